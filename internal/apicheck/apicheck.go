// Package apicheck compares the calls that a client of the HTTP API can make with the OpenAPI
// document of the broker. It is for tests.
package apicheck

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"switchboard/broker/api/spec"
)

// Call is a request that a method of a client has made.
type Call struct {
	By     string // the method of the client
	Method string // such as GET
	Target string // the path and the query
}

// operation is a call that the document describes.
type operation struct {
	id, method string
	path       []string        // the segments of the path; "" for a parameter
	query      map[string]bool // names
}

// Compare returns what is wrong with the calls: operations for API keys that none of them makes,
// and paths and query parameters that the document does not have.
func Compare(calls []Call) (problems []string, err error) {
	operations, err := read()
	if err != nil {
		return nil, err
	}
	missing := map[string]bool{}
	for _, o := range operations {
		missing[o.id] = true
	}
	for _, c := range calls {
		target, err := url.Parse(c.Target)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.By, err)
		}
		o := find(operations, c.Method, target.Path)
		if o == nil {
			problems = append(problems, fmt.Sprintf("%s calls %s %s, which is no operation for API keys", c.By, c.Method, target.Path))
			continue
		}
		delete(missing, o.id)
		for name := range target.Query() {
			if !o.query[name] {
				problems = append(problems, fmt.Sprintf("%s sends the parameter %q, which %s does not have", c.By, name, o.id))
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(missing)) {
		problems = append(problems, "no method calls "+id)
	}
	return problems, nil
}

// find returns the operation of a path, like [http.ServeMux]: the one with the most literal
// segments. A %2F in the path counts as a slash, so a client's full id fits {user}/{client}.
func find(operations []operation, method, path string) (best *operation) {
	segments := strings.Split(path, "/")
	literals := -1
	for i := range operations {
		o := &operations[i]
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

// parameter is a parameter in the document, or a reference to one.
type parameter struct{ Ref, Name, In string }

func (p *parameter) UnmarshalJSON(text []byte) error {
	var members struct {
		Ref  string `json:"$ref"`
		Name string `json:"name"`
		In   string `json:"in"`
	}
	err := json.Unmarshal(text, &members)
	*p = parameter(members)
	return err
}

// read returns the operations of the document that need an API key.
func read() (operations []operation, err error) {
	text, err := spec.OpenAPIJSON()
	if err != nil {
		return nil, err
	}
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string                `json:"operationId"`
			Security    []map[string][]string `json:"security"`
			Parameters  []parameter           `json:"parameters"`
		} `json:"paths"`
		Components struct {
			Parameters map[string]parameter `json:"parameters"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	for path, item := range document.Paths {
		for method, node := range item {
			if !slices.ContainsFunc(node.Security, func(s map[string][]string) bool { _, keyed := s["apiKey"]; return keyed }) {
				continue
			}
			o := operation{id: node.OperationID, method: strings.ToUpper(method), query: map[string]bool{}}
			for segment := range strings.SplitSeq(path, "/") {
				if strings.HasPrefix(segment, "{") {
					segment = ""
				} else if segment == "" && len(o.path) > 0 {
					return nil, fmt.Errorf("%s: an empty segment", path)
				}
				o.path = append(o.path, segment)
			}
			for _, p := range node.Parameters {
				if p.Ref != "" {
					p = document.Components.Parameters[p.Ref[strings.LastIndexByte(p.Ref, '/')+1:]]
				}
				if p.In == "query" {
					o.query[p.Name] = true
				}
			}
			operations = append(operations, o)
		}
	}
	if len(operations) == 0 {
		return nil, fmt.Errorf("the document has no operations for API keys")
	}
	return operations, nil
}
