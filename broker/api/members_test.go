package api

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"switchboard/broker/api/spec"
	"switchboard/internal/payload"
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

// notScannedMembers are the members that scanPush leaves to encoding/json.
var notScannedMembers = []string{"channels", "users", "clients", "all", "notify_after", "first", "of"}

// pushMembers returns the members of a push with a value that is not zero for each.
func pushMembers(t *testing.T) map[string]string {
	t.Helper()
	members := make(map[string]string)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[pushRequest]()) {
		typ := f.Type
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		value := ""
		switch typ.Kind() {
		case reflect.String:
			value = `"a"`
		case reflect.Bool:
			value = "true"
		case reflect.Int, reflect.Int64, reflect.Float64:
			value = "3"
		case reflect.Map:
			value = `{"a":"b"}`
		case reflect.Slice:
			value = `["a"]`
			if _, object := reflect.New(typ).Interface().(json.Marshaler); object || typ == reflect.TypeFor[json.RawMessage]() {
				value = `{"a":1}`
			}
		default:
			t.Fatalf("no value for %s", f.Name)
		}
		members[f.Tag.Get("json")] = value
	}
	return members
}

// TestScannedMembers checks that scanPush reads each member, or leaves it to encoding/json on
// purpose: a push with it then takes many times as long.
func TestScannedMembers(t *testing.T) {
	for name, value := range pushMembers(t) {
		text := `{"` + name + `":` + value + `}`
		var got pushRequest
		if s := payload.NewScanner([]byte(text)); !scanPush(&s, &got) {
			if !slices.Contains(notScannedMembers, name) {
				t.Errorf("%s is left to encoding/json", text)
			}
			continue
		}
		if want, err := decodePush([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is scanned as %+v, want %+v: %v", text, got, want, err)
		}
		if slices.Contains(notScannedMembers, name) {
			t.Errorf("%s is scanned", text)
		}
	}
}
