package spec_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"switchboard/broker/api/spec"
)

// The schemas of the two formats, which the committed package-lock.json pins.
const (
	openAPISchema  = "node_modules/@seriousme/openapi-schema-validator/schemas/v3.1/schema.json"
	asyncAPISchema = "node_modules/@asyncapi/specs/schemas/3.0.0-without-$id.json"
)

// checkFormat fails the test unless the document has the format that the schema file describes.
func checkFormat(t *testing.T, d *document, file string) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", file))
	if err != nil {
		t.Fatalf("%v (make install-test-tools installs it)", err)
	}
	defer f.Close()
	format, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("file:///format.json", format); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("file:///format.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(d.root); err != nil {
		t.Error(err)
	}
}

func TestOpenAPIFormat(t *testing.T) { checkFormat(t, parse(t, spec.OpenAPI(), false), openAPISchema) }
func TestAsyncAPIFormat(t *testing.T) {
	checkFormat(t, parse(t, spec.AsyncAPI(), false), asyncAPISchema)
}

// TestGenerators: generators make useful types of all schemas. An integer without a format gets 32
// bits in many languages, too few for an id. Beside properties, alternatives that only require
// members become alternatives without a type; in an allOf they change nothing. An object without
// properties and without additionalProperties becomes an empty one.
func TestGenerators(t *testing.T) {
	integers := 0
	parse(t, spec.OpenAPI(), false).walk(func(p pointer, o object) {
		if typ := fmt.Sprint(o["type"]); typ == "integer" || typ == "[integer null]" {
			integers++
			var most float64 = math.MaxInt64
			if text, found := o["maximum"]; found {
				most, _ = strconv.ParseFloat(fmt.Sprint(text), 64)
			}
			if wide := most > math.MaxInt32; wide != (o["format"] == "int64") {
				t.Errorf("%s: the format is %v, the maximum %v", p, o["format"], o["maximum"])
			}
		}
		properties, more, none := o["properties"], o["additionalProperties"], o["maxProperties"]
		if properties != nil && (o["oneOf"] != nil || o["anyOf"] != nil) {
			t.Errorf("%s: alternatives beside properties belong in an allOf", p)
		}
		if o["type"] == "object" && properties == nil && more == nil && none == nil {
			t.Errorf("%s: an object without properties needs additionalProperties", p)
		}
	})
	if integers < 100 {
		t.Errorf("only %d integers are checked", integers)
	}
}

// TestReferences follows every $ref of both documents, and finds components that nothing refers to.
func TestReferences(t *testing.T) {
	for name, text := range map[string][]byte{"openapi": spec.OpenAPI(), "asyncapi": spec.AsyncAPI()} {
		d := parse(t, text, false)
		used := map[string]bool{}
		d.walk(func(p pointer, o object) {
			ref, found := o["$ref"].(string)
			if !found {
				return
			}
			used[ref] = true
			if d.get(pointer(strings.TrimPrefix(ref, "#"))) == nil {
				t.Errorf("%s: %s refers to %s, which does not exist", name, p, ref)
			}
		})
		components, _ := d.root["components"].(object)
		for kind, list := range components {
			for item := range list.(object) {
				if ref := "#/components/" + kind + "/" + item; kind != "securitySchemes" && !used[ref] {
					t.Errorf("%s: nothing refers to %s", name, ref)
				}
			}
		}
	}
}

// TestSchemas compiles every schema that has properties, which also checks it against the
// meta-schema of JSON Schema.
func TestSchemas(t *testing.T) {
	for _, text := range [][]byte{spec.OpenAPI(), spec.AsyncAPI()} {
		d := parse(t, text, false)
		n := 0
		d.walk(func(p pointer, o object) {
			if _, isObject := o["properties"].(object); isObject && o["type"] == "object" {
				d.schema(t, p)
				n++
			}
		})
		if n < 20 {
			t.Errorf("only %d schemas", n)
		}
	}
}

// TestOpenAPIExamples compares every example with its schema.
func TestOpenAPIExamples(t *testing.T) {
	d := parse(t, spec.OpenAPI(), true)
	n := 0
	check := func(p pointer, example any) {
		n++
		if err := d.schema(t, p.at("schema")).Validate(example); err != nil {
			text, _ := json.Marshal(example)
			t.Errorf("%s: %s: %v", p, text, err)
		}
	}
	d.walk(func(p pointer, o object) {
		if o["schema"] == nil {
			return
		}
		if example, found := o["example"]; found {
			check(p, example)
		}
		examples, _ := o["examples"].(object)
		for _, example := range examples {
			check(p, example.(object)["value"])
		}
	})
	if n < 100 {
		t.Errorf("only %d examples", n)
	}
}

// TestOpenAPIBodies finds bodies of requests and answers without an example.
func TestOpenAPIBodies(t *testing.T) {
	d := parse(t, spec.OpenAPI(), false)
	d.walk(func(p pointer, o object) {
		media, _ := o["application/json"].(object)
		if media != nil && media["example"] == nil && media["examples"] == nil && !strings.Contains(string(p), "openapi.json") {
			t.Errorf("%s has no example", p)
		}
	})
}

// TestJSON compares the JSON of the OpenAPI document with the YAML.
func TestJSON(t *testing.T) {
	text, err := spec.OpenAPIJSON()
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	gotText, _ := json.Marshal(got)
	wantText, _ := json.Marshal(parse(t, spec.OpenAPI(), false).root)
	var want any
	if err := json.Unmarshal(wantText, &want); err != nil {
		t.Fatal(err)
	}
	if wantText, _ = json.Marshal(want); string(gotText) != string(wantText) {
		t.Error("the JSON differs from the YAML")
	}
	if !strings.HasPrefix(string(text), `{"openapi":"3.1.1","info":`) {
		t.Errorf("the order is another one: %.60s", text)
	}
}
