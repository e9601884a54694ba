package state

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// entryValue returns a value for a member of an Entry.
func entryValue(t *testing.T, typ reflect.Type) (v reflect.Value) {
	for _, text := range []string{"7", `"a"`, "true", `{"a":4}`, `{"a":"left"}`, `{"a":["b"]}`, `["a"]`} {
		v = reflect.New(typ)
		if json.Unmarshal([]byte(text), v.Interface()) == nil {
			return v.Elem()
		}
	}
	t.Fatalf("no value for the type %s", typ)
	return v
}

// TestEntryMembers finds the members of an Entry by reflection, and writes, reads, erases and shows
// an entry with data and each one. A new member that a place does not know would be lost silently.
func TestEntryMembers(t *testing.T) {
	backend := Filter{State: true, By: true, Hidden: true}
	hidden := []string{"own"} // readers do not receive it
	for i := range reflect.TypeFor[Entry]().NumField() {
		member := reflect.TypeFor[Entry]().Field(i)
		name, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		e := &Entry{Data: json.RawMessage(`{"text":"hi"}`)}
		reflect.ValueOf(e).Elem().Field(i).Set(entryValue(t, member.Type))
		text := e.Encode()
		if want := e.encodeAny(); string(text) != string(want) || !strings.Contains(string(text), `"`+name+`":`) {
			t.Errorf("%s is encoded as %s, want %s", name, text, want)
		}
		if got := new(Entry); !scanEntry(got, text[1:]) || !reflect.DeepEqual(got, e) {
			t.Errorf("%s: %s is scanned as %+v", name, text, got)
		}
		m, simple := ScanMessage(text)
		if simple && name != "from" && string(m.Encode()) != string(text) {
			t.Errorf("%s: %s is scanned as the message %s", name, text, m.Encode())
		}
		if !simple && !e.HasChanges() && e.Erase == 0 && e.Erased == 0 {
			t.Errorf("%s: ScanMessage does not know it, so every delivery of such a message is slow", name)
		}
		if erased := e.ErasedAt(5); e.HasChanges() == reflect.ValueOf(erased).Elem().Field(i).IsZero() && name != "erase" && name != "erased" {
			t.Errorf("%s: after the message was erased, the entry is %s", name, erased.Encode())
		}
		stored, ok, err := ShowStored(3, text, backend)
		shown, _ := json.Marshal(stored)
		if !ok || err != nil || strings.Contains(string(shown), `"`+name+`":`) == slices.Contains(hidden, name) {
			t.Errorf("%s: the history shows %s as %s, %v", name, text, shown, err)
		}
	}
}
