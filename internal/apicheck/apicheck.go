// Package apicheck compares the clients of the HTTP API with the OpenAPI document of the broker. It
// is for tests. Each client has a test that calls all of its methods and passes to [Compare] what
// they have sent, whether they have repeated the call after its answer was lost, and what they have
// returned.
package apicheck

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Call is a request that a method of a client has made.
type Call struct {
	By     string // the method of the client
	Method string // such as GET
	Target string // the path and the query
	Header http.Header
	Body   json.RawMessage // empty for none
	// Repeated says that the client has made the call again after its answer was lost.
	Repeated bool
}

// Compare returns what is wrong with the calls: what the document does not have, calls that are
// repeated although they must not be, or not repeated although they may, and operations for API
// keys, parameters, conditions and members of bodies that none of the calls has.
func Compare(calls []Call) (problems []string, err error) {
	c, err := compareEach(calls)
	if err != nil {
		return nil, err
	}
	for _, o := range c.document.operations {
		if !o.keyed {
			continue
		}
		if !c.made[o.id] {
			c.problem("no method calls %s", o.id)
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(o.query)) {
			if o.query[name] {
				c.require(o, "query", name)
			}
		}
		for _, name := range o.conditions {
			if !c.sent[mark(o, "body", "/version")] { // the same condition
				c.require(o, "header", name)
			}
		}
		for _, path := range c.document.paths(o.body, "") {
			c.require(o, "body", path)
		}
	}
	return c.problems, nil
}

// CompareEach is Compare for a client that does not have all calls.
func CompareEach(calls []Call) (problems []string, err error) {
	c, err := compareEach(calls)
	if err != nil {
		return nil, err
	}
	return c.problems, nil
}

// comparison is a comparison of calls.
type comparison struct {
	document *document
	problems []string
	made     map[string]bool // operations
	sent     map[string]bool // what calls had, see mark
}

func (c *comparison) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// mark returns the key of sent for a parameter, a header or a member of the body.
func mark(o *operation, kind, name string) string { return o.id + " " + kind + " " + name }

// require reports what no call of the operation has.
func (c *comparison) require(o *operation, kind, name string) {
	if !c.sent[mark(o, kind, name)] {
		c.problem("no method sends %s %s of %s", kind, strings.TrimPrefix(name, "/"), o.id)
	}
}

// compareEach compares each of the calls.
func compareEach(calls []Call) (*comparison, error) {
	d, err := read()
	if err != nil {
		return nil, err
	}
	c := &comparison{document: d, made: map[string]bool{}, sent: map[string]bool{}}
	for i := range calls {
		if err := c.compare(&calls[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", calls[i].By, err)
		}
	}
	return c, nil
}

// compare compares one call.
func (c *comparison) compare(call *Call) error {
	target, err := url.Parse(call.Target)
	if err != nil {
		return err
	}
	o := c.document.find(call.Method, target.Path)
	if o == nil {
		c.problem("%s calls %s %s, which is no operation", call.By, call.Method, target.Path)
		return nil
	}
	c.made[o.id] = true
	for name := range target.Query() {
		if _, known := o.query[name]; !known {
			c.problem("%s sends the parameter %q, which %s does not have", call.By, name, o.id)
		}
		c.sent[mark(o, "query", name)] = true
	}
	for _, name := range conditions {
		if call.Header.Get(name) == "" {
			continue
		}
		if !slices.Contains(o.conditions, name) {
			c.problem("%s sends %s, which %s does not take", call.By, name, o.id)
		}
		c.sent[mark(o, "header", name)] = true
	}
	body, err := c.compareBody(call, o)
	if err != nil {
		return err
	}
	if want := o.mayRepeat(call.Header, body); want != call.Repeated {
		c.problem("%s: repeated is %v, and x-repeat of %s says %v: %s %s %s", call.By, call.Repeated, o.id, want, call.Target, call.Header, call.Body)
	}
	return nil
}

// compareBody compares the body of a call, and returns it decoded.
func (c *comparison) compareBody(call *Call, o *operation) (body any, err error) {
	if len(call.Body) == 0 {
		if o.bodyRequired {
			c.problem("%s sends no body to %s", call.By, o.id)
		}
		return nil, nil
	}
	if err := json.Unmarshal(call.Body, &body); err != nil {
		return nil, fmt.Errorf("the body is not JSON: %w", err)
	}
	if empty, isObject := body.(object); o.body == nil && (!isObject || len(empty) > 0) {
		c.problem("%s sends a body to %s, which takes none", call.By, o.id)
	}
	if o.body != nil {
		c.compareValue(call, o, o.body, "", body)
	}
	return body, nil
}

// compareValue compares the names and the types of a value with a schema. Other rules of the schema
// do not count, since the arguments of the methods are no real ones.
func (c *comparison) compareValue(call *Call, o *operation, schema object, at string, v any) {
	schema = c.document.resolve(schema)
	if kind := kindOf(v); !c.document.permits(schema, kind) {
		c.problem("%s sends %s as %s, and %s has the type %v", call.By, strings.TrimPrefix(at, "/"), kind, o.id, schema["type"])
		return
	}
	switch v := v.(type) {
	case object:
		members := c.document.members(schema)
		for name, value := range v {
			path := at + "/" + name
			member, known := members[name]
			switch {
			case known:
				c.sent[mark(o, "body", path)] = true
				c.compareValue(call, o, member, path, value)
			case len(members) > 0:
				c.problem("%s sends the member %s, which %s does not have", call.By, path[1:], o.id)
			}
		}
	case []any:
		items, _ := schema["items"].(object)
		for _, item := range v {
			c.compareValue(call, o, items, at, item)
		}
	}
}
