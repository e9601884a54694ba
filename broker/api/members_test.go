package api

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"switchboard/broker/api/spec"
	"switchboard/internal/wire"
)

// TestMembersAreDescribed compares the members of pushes, and of messages in a history, with those
// in the OpenAPI document, from which the types of the clients are generated.
func TestMembersAreDescribed(t *testing.T) {
	text, err := spec.OpenAPIJSON()
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		schema string
		typ    reflect.Type
	}{{"Push", reflect.TypeFor[pushRequest]()}, {"StoredMessage", reflect.TypeFor[wire.Stored]()}} {
		described := document.Components.Schemas[c.schema].Properties
		known := map[string]any{}
		for _, f := range reflect.VisibleFields(c.typ) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous || len(f.Index) > 1 && described[name] == nil { // a history has few members of StateEvent
				continue
			}
			known[name] = true
		}
		if names := slices.Sorted(maps.Keys(known)); !slices.Equal(names, slices.Sorted(maps.Keys(described))) {
			t.Errorf("%s: the document has %v, %s has %v", c.schema, slices.Sorted(maps.Keys(described)), c.typ, names)
		}
	}
}
