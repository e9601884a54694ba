package spec_test

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"switchboard/broker/api/spec"
)

// operation is a call of the OpenAPI document.
type operation struct {
	id, method, path string
	at               pointer
	scope            string // "" for any key, if keyed is set
	keyed            bool   // the call needs an API key
	setting          string // switches the call on; "" for none
	node             object
}

// operations returns all calls of the document by operationId.
func operations(t *testing.T, d *document) map[string]*operation {
	t.Helper()
	list := map[string]*operation{}
	for path, item := range d.root["paths"].(object) {
		for method, node := range item.(object) {
			o := &operation{method: strings.ToUpper(method), path: path, at: pointer("").at("paths", path, method), node: node.(object)}
			o.id, _ = o.node["operationId"].(string)
			o.setting, _ = o.node["x-setting"].(string)
			if o.id == "" || list[o.id] != nil {
				t.Fatalf("%s %s: the operationId %q is missing or exists", o.method, path, o.id)
			}
			security, found := o.node["security"].([]any)
			if !found {
				t.Errorf("%s: security is missing", o.id)
			}
			for _, s := range security {
				if scopes, keyed := s.(object)["apiKey"].([]any); keyed {
					o.keyed = true
					if len(scopes) > 0 {
						o.scope = scopes[0].(string)
					}
				}
			}
			list[o.id] = o
		}
	}
	return list
}

// parameters returns the pointers to the parameters of the operation.
func (o *operation) parameters(d *document) (list []pointer) {
	all, _ := o.node["parameters"].([]any)
	for i := range all {
		list = append(list, d.follow(o.at.at("parameters", strconv.Itoa(i))))
	}
	return list
}

// parametersIn returns the names of the parameters of a kind, in order.
func (o *operation) parametersIn(d *document, kind string) (names []string) {
	for _, p := range o.parameters(d) {
		if parameter := d.object(p); parameter["in"] == kind {
			names = append(names, parameter["name"].(string))
		}
	}
	slices.Sort(names)
	return names
}

// body returns the pointer to the schema of the body. It may not exist.
func (o *operation) body(d *document) pointer {
	return d.follow(o.at.at("requestBody")).at("content", "application/json", "schema")
}

// response returns the pointer to the response with a status, or "".
func (o *operation) response(d *document, status int) pointer {
	p := o.at.at("responses", strconv.Itoa(status))
	if d.get(p) == nil {
		return ""
	}
	return d.follow(p)
}

// statuses returns the documented statuses.
func (o *operation) statuses() []string {
	return slices.Sorted(maps.Keys(o.node["responses"].(object)))
}

// outside are the calls that are not under /v1, by operationId.
var outside = map[string]string{
	"getIndex": "GET /", "getHealth": "GET /healthz", "getReadiness": "GET /readyz", "getMetrics": "GET /metrics",
	"getOpenAPI": "GET " + spec.PathOpenAPI, "getOpenAPIAsJSON": "GET " + spec.PathOpenAPIJSON, "getAsyncAPI": "GET " + spec.PathAsyncAPI,
	"openStream": "GET /sse", "acknowledgeStream": "POST /sse",
}

// TestEndpoints compares the calls of a broker with the document.
func TestEndpoints(t *testing.T) {
	d := parse(t, spec.OpenAPI(), false)
	described := map[string]*operation{} // by pattern
	for _, o := range operations(t, d) {
		described[o.method+" "+o.path] = o
	}
	for id, pattern := range outside {
		if o := described[pattern]; o == nil || o.id != id || o.keyed {
			t.Errorf("%s: it is not described as a public call with the id %s", pattern, id)
		}
		delete(described, pattern)
	}
	for _, e := range newBroker(t).Endpoints() {
		o := described[e.Pattern]
		switch {
		case o == nil:
			t.Errorf("%s is not described", e.Pattern)
			continue
		case e.Public == o.keyed:
			t.Errorf("%s: public is %v, and described as %v", e.Pattern, e.Public, !o.keyed)
		case e.Scope != o.scope:
			t.Errorf("%s: the scope is %q, and described as %q", e.Pattern, e.Scope, o.scope)
		case e.Body != (o.node["requestBody"] != nil):
			t.Errorf("%s: it takes a body: %v, and is described otherwise", e.Pattern, e.Body)
		}
		for kind, names := range map[string][]string{"query": e.Query, "header": e.Conditions.Headers()} {
			names = slices.Sorted(slices.Values(names))
			if described := o.parametersIn(d, kind); !slices.Equal(names, described) {
				t.Errorf("%s: the parameters are %q, and described as %q", e.Pattern, names, described)
			}
		}
		delete(described, e.Pattern)
	}
	for pattern := range described {
		t.Errorf("%s is described, but no broker has it", pattern)
	}
}

// TestParameters compares the parameters of each operation with the placeholders of its path.
func TestParameters(t *testing.T) {
	d := parse(t, spec.OpenAPI(), false)
	for _, o := range operations(t, d) {
		inPath := map[string]bool{}
		for _, p := range o.parameters(d) {
			parameter := d.object(p)
			if parameter["in"] == "path" {
				inPath["{"+parameter["name"].(string)+"}"] = true
			}
		}
		for part := range strings.SplitSeq(o.path, "/") {
			if strings.HasPrefix(part, "{") && !inPath[part] {
				t.Errorf("%s: the parameter %s is not described", o.id, part)
			}
			delete(inPath, part)
		}
		if len(inPath) > 0 {
			t.Errorf("%s: the path has no %v", o.id, inPath)
		}
	}
}

// TestPages finds lists that do not page like the others: a call with the parameter cursor answers
// the cursor of the next page, and a call that answers it takes it.
func TestPages(t *testing.T) {
	d := parse(t, spec.OpenAPI(), false)
	for _, o := range operations(t, d) {
		takes := slices.ContainsFunc(o.parameters(d), func(p pointer) bool { return d.object(p)["name"] == "cursor" })
		page := o.response(d, http.StatusOK)
		if page == "" {
			continue
		}
		schema := d.follow(page.at("content", "application/json", "schema"))
		if d.get(schema.at("oneOf", "0")) != nil { // a page, or the one with a name
			schema = d.follow(schema.at("oneOf", "0"))
		}
		if answers := d.get(schema.at("properties", "cursor")) != nil; takes != answers {
			t.Errorf("%s: it takes a cursor: %v; its pages have one: %v", o.id, takes, answers)
		}
	}
}

// TestTags finds tags that are not described, and operations without one.
func TestTags(t *testing.T) {
	d := parse(t, spec.OpenAPI(), false)
	known := map[any]bool{}
	for _, tag := range d.root["tags"].([]any) {
		known[tag.(object)["name"]] = true
	}
	for _, o := range operations(t, d) {
		tags, _ := o.node["tags"].([]any)
		if len(tags) != 1 || !known[tags[0]] {
			t.Errorf("%s: tags: %v", o.id, tags)
		}
	}
}
