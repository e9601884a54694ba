package apicheck

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"switchboard/broker/api/spec"
)

// object is a node of the document, or of JSON that is compared with it.
type object = map[string]any

// document is the OpenAPI document.
type document struct {
	root       object
	operations []*operation // by operationId
}

// operation is a call that the document describes.
type operation struct {
	id, method   string
	pattern      string // the path
	keyed        bool   // the call needs an API key
	path         []string
	query        map[string]bool // by the name of the parameter: whether it is not deprecated
	conditions   []string        // headers
	body         object          // the schema; nil for none
	bodyRequired bool
	answer       object // the schema of the first success; nil for none that is JSON
	repeat       any    // x-repeat
}

// conditions are the headers on which a call can depend.
var conditions = []string{"If-Match", "If-None-Match"}

// read reads the document.
func read() (*document, error) {
	text, err := spec.OpenAPIJSON()
	if err != nil {
		return nil, err
	}
	d := &document{}
	if err := json.Unmarshal(text, &d.root); err != nil {
		return nil, err
	}
	for path, item := range d.root["paths"].(object) {
		for method, node := range item.(object) {
			d.operations = append(d.operations, d.newOperation(strings.ToUpper(method), path, node.(object)))
		}
	}
	if len(d.operations) == 0 {
		return nil, fmt.Errorf("the document has no operations")
	}
	slices.SortFunc(d.operations, func(a, b *operation) int { return strings.Compare(a.id, b.id) })
	return d, nil
}

func (d *document) newOperation(method, path string, node object) *operation {
	o := &operation{method: method, pattern: path, query: map[string]bool{}, repeat: node["x-repeat"]}
	o.id, _ = node["operationId"].(string)
	for segment := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(segment, "{") {
			segment = ""
		}
		o.path = append(o.path, segment)
	}
	security, _ := node["security"].([]any)
	o.keyed = slices.ContainsFunc(security, func(s any) bool { return s.(object)["apiKey"] != nil })
	parameters, _ := node["parameters"].([]any)
	for _, p := range parameters {
		parameter := d.resolve(p.(object))
		name := parameter["name"].(string)
		switch {
		case parameter["in"] == "query":
			o.query[name] = parameter["deprecated"] != true
		case parameter["deprecated"] == true:
		case slices.Contains(conditions, name):
			o.conditions = append(o.conditions, name)
		}
	}
	if body, found := node["requestBody"].(object); found {
		body = d.resolve(body)
		o.bodyRequired = body["required"] == true
		o.body = d.json(body)
	}
	if ok, found := node["responses"].(object)["200"].(object); found {
		o.answer = d.json(d.resolve(ok))
	}
	return o
}

// json returns the schema of the JSON content of a body, nil for none.
func (d *document) json(body object) object {
	content, _ := body["content"].(object)
	media, _ := content["application/json"].(object)
	schema, _ := media["schema"].(object)
	return schema
}

// resolve returns the object to which o refers, or o.
func (d *document) resolve(o object) object {
	for {
		ref, found := o["$ref"].(string)
		if !found {
			return o
		}
		var node any = d.root
		for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			node = node.(object)[name]
		}
		o = node.(object)
	}
}

// find returns the operation of a path, like [http.ServeMux]: the one with the most literal
// segments. A %2F in the path counts as a slash, so a client's full id fits {user}/{client}.
func (d *document) find(method, path string) (best *operation) {
	segments := strings.Split(path, "/")
	literals := -1
	for _, o := range d.operations {
		if o.method != method || len(o.path) != len(segments) {
			continue
		}
		n := 0
		for k, want := range o.path {
			if want != "" && want != segments[k] {
				n = -1
				break
			}
			if want != "" {
				n++
			}
		}
		if n > literals {
			best, literals = o, n
		}
	}
	return best
}

// alternatives are the members of a schema that have schemas of the same value.
var alternatives = []string{"allOf", "oneOf", "anyOf"}

// members returns the members of an object with the schema, without those that are deprecated.
func (d *document) members(schema object) map[string]object {
	schema = d.resolve(schema)
	all := map[string]object{}
	properties, _ := schema["properties"].(object)
	for name, member := range properties {
		if member, ok := member.(object); ok {
			all[name] = member
		} else { // true: any JSON
			all[name] = object{}
		}
	}
	for _, kind := range alternatives {
		list, _ := schema[kind].([]any)
		for _, one := range list {
			for name, member := range d.members(one.(object)) {
				all[name] = member
			}
		}
	}
	return all
}

// required returns the members that every value with the schema has, apart from null. x-ts can say
// that an answer to a backend has more of them; the tests of the document compare that with answers
// of a broker.
func (d *document) required(schema object) (list []string) {
	schema = d.resolve(schema)
	names, _ := schema["required"].([]any)
	for _, name := range names {
		list = append(list, name.(string))
	}
	types, _ := schema["x-ts"].(object)
	for _, options := range types {
		option, _ := options.(object)
		more, _ := option["required"].([]any)
		for _, name := range more {
			list = append(list, name.(string))
		}
	}
	for _, kind := range alternatives {
		var in []string // all of allOf, or each of the others
		ones, _ := schema[kind].([]any)
		ones = slices.DeleteFunc(slices.Clone(ones), func(one any) bool { return one.(object)["type"] == "null" })
		for i, one := range ones {
			of := d.required(one.(object))
			if kind == "allOf" || i == 0 {
				in = append(in, of...)
				continue
			}
			in = slices.DeleteFunc(in, func(name string) bool { return !slices.Contains(of, name) })
		}
		list = append(list, in...)
	}
	return list
}

// paths returns the paths of all members that a value with the schema can have, such as /import/id,
// without those that are deprecated.
func (d *document) paths(schema object, at string) (list []string) {
	if schema = d.resolve(schema); schema == nil {
		return nil
	}
	for name, member := range d.members(schema) {
		if d.resolve(member)["deprecated"] != true {
			list = append(append(list, at+"/"+name), d.paths(member, at+"/"+name)...)
		}
	}
	if items, found := schema["items"].(object); found {
		list = append(list, d.paths(items, at)...)
	}
	slices.Sort(list)
	return list
}

// permits reports whether a value of a kind can have the schema.
func (d *document) permits(schema object, kind string) bool {
	schema = d.resolve(schema)
	if kind == "null" { // it means that the member is absent
		return true
	}
	is := func(typ any) bool { return typ == kind || typ == "integer" && kind == "number" }
	switch typ := schema["type"].(type) {
	case string:
		return is(typ)
	case []any:
		return slices.ContainsFunc(typ, is)
	}
	if value, found := schema["const"]; found {
		return kindOf(value) == kind
	}
	for _, name := range alternatives {
		list, _ := schema[name].([]any)
		fits := func(one any) bool { return d.permits(one.(object), kind) }
		if len(list) > 0 && !slices.ContainsFunc(list, fits) {
			return false
		}
	}
	return true
}

// kindOf returns the type of a JSON value, as schemas name it.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64, json.Number:
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// mayRepeat reports whether a call may be made again after its answer was lost.
func (o *operation) mayRepeat(header http.Header, body any) bool {
	if o.method == http.MethodGet || o.repeat == "always" {
		return true
	}
	rule, _ := o.repeat.(object)
	if with, found := rule["with"].([]any); found {
		return slices.ContainsFunc(with, func(name any) bool { return has(body, name.(string)) })
	}
	unless, found := rule["unless"].([]any)
	return found && !slices.ContainsFunc(unless, func(name any) bool {
		return header.Get(name.(string)) != "" || has(body, name.(string))
	})
}

// has reports whether a body has a member that is not empty. A batch has it if all of its messages
// have it.
func has(body any, name string) bool {
	o, _ := body.(object)
	if messages, _ := o["messages"].([]any); len(messages) > 0 {
		return !slices.ContainsFunc(messages, func(m any) bool { return !has(m, name) })
	}
	value, found := o[name]
	return found && value != nil && value != ""
}
