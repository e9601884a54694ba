package state

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"switchboard/internal/wire"
)

// These tests find the members of entries by reflection: code that does not know a new member
// would drop it, or keep it where it must go. CONTRIBUTING.md lists the places that know a member.

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

// unseenMembers are the members that no client sees in a message. "erase" has an entry of its own.
var unseenMembers = []string{"own", "from", "exclude", "erased", "erase"}

// fill sets v to a value that is not zero. Its strings contain text.
func fill(t *testing.T, v reflect.Value, text string) {
	t.Helper()
	switch {
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8: // JSON
		v.SetBytes([]byte(`{"n":1}`))
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(7)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0), text)
		fill(t, v.Index(1), text)
	case v.Kind() == reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		fill(t, value, text)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("a/b"), value)
	default:
		t.Fatalf("fill does not know the type %s", v.Type())
	}
}

// entryMembers returns the indexes of the members of an Entry by their names in JSON.
func entryMembers() map[string]int {
	members := make(map[string]int)
	for i := range reflect.TypeFor[Entry]().NumField() {
		members[jsonName(reflect.TypeFor[Entry]().Field(i))] = i
	}
	return members
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// membersOf returns the names of the members of the JSON of v.
func membersOf(t *testing.T, v any) map[string]json.RawMessage {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return members
}

// TestEscapedMembers encodes and decodes entries with each member, with texts that need escapes.
func TestEscapedMembers(t *testing.T) {
	for name, i := range entryMembers() {
		var e Entry
		fill(t, reflect.ValueOf(&e).Elem().Field(i), `a"\<é`+"\n")
		encoded := e.Encode()
		if want := e.encodeAny(); string(encoded) != string(want) {
			t.Errorf("%s: Encode returns %s, want %s", name, encoded, want)
		}
		if back, err := DecodeEntry(encoded); err != nil || !reflect.DeepEqual(*back, e) {
			t.Errorf("%s: %s is decoded as %+v, %v", name, encoded, back, err)
		}
	}
}

// TestMessageMembers checks each member of a Message: it is the one of the Entry with its name.
func TestMessageMembers(t *testing.T) {
	for i := range reflect.TypeFor[Message]().NumField() {
		m, e := Message{Data: []byte("1")}, Entry{Data: json.RawMessage("1")}
		name := reflect.TypeFor[Message]().Field(i).Name
		fill(t, reflect.ValueOf(&m).Elem().Field(i), "text")
		of := reflect.ValueOf(&e).Elem().FieldByName(name)
		if !of.IsValid() {
			t.Errorf("Entry has no %s", name)
			continue
		}
		fill(t, of, "text")
		if name == "Data" {
			m.Data = e.Data
		}
		if got, want := m.Encode(), e.Encode(); string(got) != string(want) {
			t.Errorf("%s: Message.Encode returns %s, want %s", name, got, want)
		}
		if got, ok := ScanMessage(e.Encode()); !ok || !reflect.DeepEqual(got, m) {
			t.Errorf("%s: ScanMessage returns %+v, %v", name, got, ok)
		}
		if got := e.Message(); !reflect.DeepEqual(got, m) {
			t.Errorf("%s: Entry.Message returns %+v", name, got)
		}
		if name == "By" {
			name = "Client" // of an update without ByField
		}
		u := Update{Data: m.Data, Writer: BackendHolder}
		fill(t, reflect.ValueOf(&u).Elem().FieldByName(name), "text")
		result, err := New().Apply(&u, 1000, func() int64 { return 1 })
		if err != nil || len(result.Entries) != 1 || !reflect.DeepEqual(result.Entries[0].Entry.Message(), m) {
			t.Errorf("%s: an update makes %+v, %v", name, result, err)
		}
	}
}

// fullEntry returns an entry with all members except Erase, which has an entry of its own.
func fullEntry(t *testing.T) *Entry {
	t.Helper()
	e := new(Entry)
	for name, i := range entryMembers() {
		if name != "erase" {
			fill(t, reflect.ValueOf(e).Elem().Field(i), "a/b")
		}
	}
	return e
}

// TestShownMembers checks that clients see all members of an entry in messages and histories,
// unless they are unseen.
func TestShownMembers(t *testing.T) {
	e, filter := fullEntry(t), Filter{State: true, By: true}
	stored, ok, err := ShowStored(1, e.Encode(), filter)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	history := membersOf(t, stored)
	message := membersOf(t, wire.Event{Data: e.Data, StateEvent: e.Show(filter)})
	for name := range entryMembers() {
		unseen := slices.Contains(unseenMembers, name)
		if unseen == (history[name] != nil) && name != "erased" {
			t.Errorf("the history of clients has %q: %v", name, !unseen)
		}
		if unseen == (message[name] != nil) {
			t.Errorf("messages to clients have %q: %v", name, !unseen)
		}
	}
}

// TestMemberPlaces checks that the names in the table of CONTRIBUTING.md exist in the directories
// of their rows.
func TestMemberPlaces(t *testing.T) {
	page, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## A new member of a message\n")
	rows := regexp.MustCompile("(?m)^\\| `([a-z/]+)` \\| ([^|]+) \\|").FindAllStringSubmatch(table, -1)
	if len(rows) < 15 {
		t.Errorf("the table has %d rows", len(rows))
	}
	for _, row := range rows {
		words := wordsBelow(t, "../../"+row[1])
		for _, name := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(row[2], -1) {
			if !words[name[1]] {
				t.Errorf("%s has no %s", row[1], name[1])
			}
		}
	}
}

// wordsBelow returns the words in the files of a directory, without tests.
func wordsBelow(t *testing.T, dir string) map[string]bool {
	t.Helper()
	words := make(map[string]bool)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules"):
			return fs.SkipDir
		case !d.Type().IsRegular() || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for word := range strings.FieldsFuncSeq(string(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
			words[word] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return words
}

// TestMembersPage compares the table in docs/keys.md with the members of an Entry.
func TestMembersPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/keys.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n| member | meaning |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	described := map[string]bool{}
	for _, row := range strings.Split(table, "\n") {
		names, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(names, -1) {
			described[name[1]] = true
		}
	}
	members := entryMembers()
	for name := range members {
		if !described[name] {
			t.Errorf("docs/keys.md does not describe %q", name)
		}
	}
	if len(described) != len(members) {
		t.Errorf("docs/keys.md describes %d members, want %d: %v", len(described), len(members), described)
	}
}
