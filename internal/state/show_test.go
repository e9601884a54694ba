package state

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"switchboard/internal/wire"
)

// TestAppendField checks the forms of a field in pages and refusals.
func TestAppendField(t *testing.T) {
	for want, f := range map[string]*Shown{
		`"a/1":null`:                  nil,
		`"a/1":[7,"x"]`:               {ID: 7, Value: []byte(`"x"`)},
		`"a/1":[7,{"n":1},99]`:        {ID: 7, Value: []byte(`{"n":1}`), Until: 99},
		`"a/1":[7,null,99,"away"]`:    {ID: 7, Value: []byte(`null`), Until: 99, Away: true},
		`"a/1":[7,[1,2],0,"away"]`:    {ID: 7, Value: []byte(`[1,2]`), Away: true, Owners: []string{"amy"}},
		`"a/1":[-1,"",1795330758518]`: {ID: -1, Value: []byte(`""`), Until: 1795330758518},
	} {
		if got := string(AppendField(nil, "a/1", f)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestPages checks that pages hold the fields of a filter, all of them once and in order, within
// the limit unless a field alone exceeds it.
func TestPages(t *testing.T) {
	m := NewMap(5)
	for name, value := range map[string]string{"$$secret": `1`, "$max/a/": `2`, "a/1": `"xxxxxxxx"`, "a/2": `3`, "a/3": `4`, "b": `5`} {
		m.Fields[name] = Shown{ID: 1, Value: []byte(value)}
	}
	m.Fields["a/2"] = Shown{ID: 1, Value: []byte(`3`), Until: 100}
	for _, test := range []struct {
		name   string
		now    int64
		filter Filter
		limit  int
		want   []string
	}{
		{"no state", 0, Filter{}, 0, []string{`{}`}},
		{"client", 0, Filter{State: true}, 0, []string{`{"$max/a/":[1,2],"a/1":[1,"xxxxxxxx"],"a/2":[1,3,100],"a/3":[1,4],"b":[1,5]}`}},
		{"backend", 100, Filter{State: true, Prefix: "$", Hidden: true}, 0, []string{`{"$$secret":[1,1],"$max/a/":[1,2]}`}},
		{"prefix and time", 100, Filter{State: true, Prefix: "a/"}, 0, []string{`{"a/1":[1,"xxxxxxxx"],"a/3":[1,4]}`}},
		{"small pages", 99, Filter{State: true, Prefix: "a/"}, 19, []string{`{"a/1":[1,"xxxxxxxx"]}`, `{"a/2":[1,3,100]}`, `{"a/3":[1,4]}`}},
		{"two fit", 100, Filter{State: true}, len(`{"a/3":[1,4],"b":[1,5]}`), []string{`{"$max/a/":[1,2]}`, `{"a/1":[1,"xxxxxxxx"]}`, `{"a/3":[1,4],"b":[1,5]}`}},
		{"hidden ones only", 0, Filter{State: true, Prefix: "$$"}, 0, []string{`{}`}},
	} {
		got := []string{}
		for _, page := range m.Pages(test.now, test.filter, test.limit) {
			got = append(got, string(page))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// TestShowEntry checks what filters show of an entry.
func TestShowEntry(t *testing.T) {
	e := &Entry{
		Gone: map[string]string{"a/1": Expired, "$$x": Left}, Del: []string{"a/2", "b"}, Set: map[string]json.RawMessage{"a/3": json.RawMessage("1")},
		Until: map[string]int64{"a/3": 7}, Away: map[string]int64{"a/4": 8}, Back: []string{"b/5"}, Own: map[string][]string{"b/5": {"amy"}}, By: "amy",
	}
	for _, test := range []struct {
		name   string
		entry  *Entry
		filter Filter
		want   string // "" for nil
	}{
		{"no state", e, Filter{By: true}, ""},
		{"no state, with data", &Entry{Set: e.Set, By: "amy", Data: []byte("1")}, Filter{By: true}, `{"by":"amy"}`},
		{"no state, no author", &Entry{Data: []byte("1")}, Filter{By: true}, ""},
		{"no state, not the author", &Entry{By: "amy", Data: []byte("1")}, Filter{}, ""},
		{"all", e, Filter{State: true, By: true}, `{"gone":{"a/1":"expired"},"del":["a/2","b"],"set":{"a/3":1},"until":{"a/3":7},"away":{"a/4":8},"back":["b/5"],"by":"amy"}`},
		{"no by", e, Filter{State: true, Prefix: "b"}, `{"del":["b"],"back":["b/5"]}`},
		{"by only with a change", e, Filter{State: true, Prefix: "c/", By: true}, ""},
		{"by with data", &Entry{Set: e.Set, By: "amy", Data: []byte("1")}, Filter{State: true, Prefix: "c/", By: true}, `{"by":"amy"}`},
		{"backend", &Entry{Gone: e.Gone}, Filter{State: true, Prefix: "$", Hidden: true}, `{"gone":{"$$x":"left"}}`},
		{"cleared", &Entry{Cleared: true}, Filter{State: true, Prefix: "c/"}, `{"cleared":true}`},
		{"owners", &Entry{Own: e.Own}, Filter{State: true}, ""},
	} {
		before := string(test.entry.Encode())
		got := ""
		if s := test.entry.Show(test.filter); s != nil {
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			got = string(text)
		}
		if got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
		if after := string(test.entry.Encode()); after != before {
			t.Errorf("%s: Show has changed the entry to %s", test.name, after)
		}
	}
}

// TestShowErased checks what histories show of an erased message, and of the report of it.
func TestShowErased(t *testing.T) {
	message := &Entry{By: "amy", From: "amy/tab", Exclude: "bob", Data: []byte("1"), Set: map[string]json.RawMessage{"a": json.RawMessage("2"), "$$x": json.RawMessage("3")}}
	all := Filter{State: true, By: true, Hidden: true}
	for _, test := range []struct {
		entry  *Entry
		filter Filter
		want   string
	}{
		{message.ErasedAt(7), Filter{}, `{"id":5,"erased":7}`},
		{message.ErasedAt(7), Filter{State: true, By: true}, `{"id":5,"erased":7,"set":{"a":2}}`},
		{message.ErasedAt(7), all, `{"id":5,"erased":7,"set":{"$$x":3,"a":2}}`},
		{&Entry{Erase: 4}, Filter{}, `{"id":5,"erase":4}`},
		{&Entry{Erase: 4}, all, `{"id":5,"erase":4}`},
	} {
		text := test.entry.Encode()
		if IsErased(text) != (test.entry.Erased != 0) {
			t.Errorf("%s: IsErased is wrong", text)
		}
		shown, ok, err := ShowStored(5, text, test.filter)
		got, _ := json.Marshal(shown)
		if err != nil || !ok || string(got) != test.want {
			t.Errorf("%s with %+v: got %s, %v, %v, want %s", text, test.filter, got, ok, err, test.want)
		}
	}
}

// TestShowRefusal checks that the values of a refusal end at PageBytes, and that ids follow.
func TestShowRefusal(t *testing.T) {
	big := []byte(`"` + strings.Repeat("x", 20<<10) + `"`)
	r := &Refusal{
		Err: wire.Errorf(wire.Full, "full"), Group: "a/", Max: 0,
		Fields: map[string]*Field{"a/1": {ID: 1, Value: big}, "a/2": {ID: 2, Value: big}, "a/3": {ID: 3, Value: []byte("3")}, "a/4": nil, "$$x": {ID: 5}},
	}
	s := r.Show(Filter{State: true}, 0)
	if want := `{"a/1":[1,` + string(big) + `],"a/2":[2],"a/3":[3,3],"a/4":null}`; string(s.Fields) != want {
		t.Errorf("got %.40s…%s", s.Fields, s.Fields[max(0, len(s.Fields)-60):])
	}
	if s.Group != "a/" || s.Max == nil || *s.Max != 0 {
		t.Errorf("got group %q, max %v, want a/ and 0", s.Group, s.Max)
	}
	if s := r.Show(Filter{}, 0); s.Fields != nil {
		t.Errorf("a caller without the right to read sees %s", s.Fields)
	}
	r = &Refusal{Err: wire.Errorf(wire.Conflict, "conflict")}
	if s := r.Show(Filter{State: true}, 0); s.Max != nil || s.Fields != nil {
		t.Errorf("got %+v, want nothing", s)
	}
	if got := string(ShowNumbers(map[string]int64{"b": 2, "a": -1})); got != `{"a":-1,"b":2}` || ShowNumbers(maps.Clone(map[string]int64{})) != nil {
		t.Errorf("got %s", got)
	}
}
