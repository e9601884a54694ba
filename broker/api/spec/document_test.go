package spec_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

type object = map[string]any

// document is a description, with its schemas.
type document struct {
	root     object
	mu       sync.Mutex // guards the fields below
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema // by pointer
}

// rootURL is where the schemas of a document refer to.
const rootURL = "file:///document.json"

// parse parses a description. With closed, an object must not have members that its schema does not
// list: so a test finds members that are not described, although clients must ignore them.
func parse(t *testing.T, text []byte, closed bool) *document {
	t.Helper()
	var loose any
	if err := yaml.Unmarshal(text, &loose); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(loose)
	if err != nil {
		t.Fatal(err)
	}
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if closed {
		closeSchemas(root)
	}
	d := &document{root: root.(object), compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	if d.root["asyncapi"] != nil {
		d.compiler.DefaultDraft(jsonschema.Draft7) // that of the schemas of AsyncAPI 3.0
	}
	if err := d.compiler.AddResource(rootURL, root); err != nil {
		t.Fatal(err)
	}
	return d
}

// requireTyped makes the members required that some types of clients always have, by the options of
// x-go and x-ts, see package apigen: so a test finds answers without them. types selects the names
// of types.
func requireTyped(v any, types func(name string) bool) {
	switch v := v.(type) {
	case object:
		for _, extension := range []string{"x-go", "x-ts"} {
			names, _ := v[extension].(object)
			for name, options := range names {
				if !types(name) {
					continue
				}
				option, _ := options.(object)
				more, _ := option["required"].([]any)
				required, _ := v["required"].([]any)
				for _, name := range more {
					if !slices.Contains(required, name) {
						required = append(required, name)
						v["required"] = required
					}
				}
			}
		}
		for _, item := range v {
			requireTyped(item, types)
		}
	case []any:
		for _, item := range v {
			requireTyped(item, types)
		}
	}
}

// closeSchemas makes every schema with properties refuse other ones.
func closeSchemas(v any) {
	switch v := v.(type) {
	case object:
		_, properties := v["properties"].(object)
		_, open := v["additionalProperties"]
		if properties && v["type"] == "object" && !open {
			v["additionalProperties"] = false
		}
		for name, item := range v {
			if name != "example" && name != "examples" {
				closeSchemas(item)
			}
		}
	case []any:
		for _, item := range v {
			closeSchemas(item)
		}
	}
}

// pointer is a JSON pointer (RFC 6901) to a node of a document.
type pointer string

// at returns the pointer to a member or an element.
func (p pointer) at(names ...string) pointer {
	for _, name := range names {
		p += pointer("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	return p
}

// get returns the node at a pointer, nil if there is none.
func (d *document) get(p pointer) any {
	var node any = d.root
	for name := range strings.SplitSeq(strings.TrimPrefix(string(p), "/"), "/") {
		node = child(node, strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
	}
	return node
}

// child returns a member of an object or an element of a list, nil if there is none.
func child(node any, name string) any {
	switch node := node.(type) {
	case object:
		return node[name]
	case []any:
		var i int
		if json.Unmarshal([]byte(name), &i) == nil && i < len(node) {
			return node[i]
		}
	}
	return nil
}

// follow returns the pointer to what the node at p refers to, or p.
func (d *document) follow(p pointer) pointer {
	for {
		node, _ := d.get(p).(object)
		ref, found := node["$ref"].(string)
		if !found {
			return p
		}
		p = pointer(strings.TrimPrefix(ref, "#"))
	}
}

// object returns the object at p, or at what it refers to.
func (d *document) object(p pointer) object {
	o, _ := d.get(d.follow(p)).(object)
	return o
}

// schema returns the schema at p.
func (d *document) schema(t *testing.T, p pointer) *jsonschema.Schema {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.schemas[string(p)]; s != nil {
		return s
	}
	fragment := strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D", " ", "%20", "$", "%24").Replace(string(p))
	s, err := d.compiler.Compile(rootURL + "#" + fragment)
	if err != nil {
		t.Fatalf("%s: %v", p, err)
	}
	d.schemas[string(p)] = s
	return s
}

// check returns an error unless JSON fits the schema at p.
func (d *document) check(t *testing.T, p pointer, text []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return d.schema(t, p).Validate(v)
}

// walk calls visit for every object of the document.
func (d *document) walk(visit func(p pointer, o object)) { walk("", d.root, visit) }

func walk(p pointer, v any, visit func(pointer, object)) {
	switch v := v.(type) {
	case object:
		visit(p, v)
		for name, item := range v {
			if name != "example" && name != "examples" {
				walk(p.at(name), item, visit)
			}
		}
	case []any:
		for i, item := range v {
			text, _ := json.Marshal(i)
			walk(p.at(string(text)), item, visit)
		}
	}
}
