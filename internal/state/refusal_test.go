package state

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRefusals checks the text of each refusal, and the fields and the limit that it shows.
func TestRefusals(t *testing.T) {
	full := Update{Ops: []Op{set("a/1", "1"), set("a/2", "2"), set("n", "5"), set("s", `"x"`), set("m/1", "1")}}
	for _, test := range []struct {
		name   string
		update Update
		want   string // the error, and the `fields`, `group` and `max` of the event
	}{
		{"condition id", Update{If: []Condition{{Field: "n", ID: 7}}}, `conflict: field n: it does not meet the condition {"n":[1,5]}`},
		{"condition absent", Update{If: []Condition{{Field: "n", Kind: IsAbsent}}}, `conflict: field n: it does not meet the condition {"n":[1,5]}`},
		{"condition exists", Update{If: []Condition{{Field: "x", Kind: Exists}}}, `conflict: field x: it does not meet the condition {"x":null}`},
		{"all conditions are shown", Update{If: []Condition{{Field: "n", Kind: Exists}, {Field: "x", ID: 1}, {Field: "s", Kind: IsAbsent}}},
			`conflict: field x: it does not meet the condition {"s":[1,"x"],"x":null}`},
		{"claim", from("amy", 1, set("n", "1").claimed()), `conflict: field n: another user holds it {"n":[1,5]}`},
		{"claim to delete", from("amy", 1, del("n").claimed()), `conflict: field n: another user holds it {"n":[1,5]}`},
		{"claim to touch", from("amy", 1, touch("n", 0).claimed()), `conflict: field n: another user holds it {"n":[1,5]}`},
		{"touch of nothing", Update{Ops: []Op{touch("x", 0)}}, `not_found: field x: there is no such field {"x":null}`},
		{"add to text", Update{Ops: []Op{add("s", 1, 0, 9)}}, `bad_request: field s: its value is not a whole number {"s":[1,"x"]}`},
		{"add above", Update{Ops: []Op{add("n", 5, 0, 9)}}, `limit: field n: the result 10 is out of bounds {"n":[1,5]}`},
		{"add below", Update{Ops: []Op{add("n", -6, 0, 9)}}, `limit: field n: the result -1 is out of bounds {"n":[1,5]}`},
		{"add to nothing", Update{Ops: []Op{add("x", -6, 0, 9)}}, `limit: field x: the result -6 is out of bounds {"x":null}`},
		{"add within bounds, but not exact in JSON", Update{Ops: []Op{add("n", MaxNumber, math.MinInt64, math.MaxInt64)}},
			`limit: field n: the result 9007199254740996 is out of bounds {"n":[1,5]}`},
		{"absent parent", Update{Ops: []Op{set("p", "1").of("x")}}, `not_found: field p: its parent x does not exist {"p":null}`},
		{"deleted parent", Update{Ops: []Op{set("p", "1").of("n"), del("n")}}, `not_found: field p: its parent n does not exist {"p":null}`},
		{"own parent", Update{Ops: []Op{set("n", "1").of("n")}}, `bad_request: field n: a field that is part of another one cannot have parts {"n":[1,5]}`},
		{"part of a part", Update{Ops: []Op{set("p", "1").of("n"), set("q", "1").of("p")}},
			`bad_request: field q: a field that is part of another one cannot have parts {"q":null}`},
		{"held parent", from("amy", 1, set("p", "1").ofHeld("m/1")), `forbidden: field p: another user holds its parent m/1 {"p":null}`},
		{"owned", Update{Ops: []Op{set("x", "1").own(0), set("y", "1").own(0)}, Client: "amy", Limits: Limits{Owned: 1}},
			`full: field x: the client would own 2 fields, at most 1 are allowed {"x":null} max 1`},
		{"group", Update{Ops: []Op{set("a/3", "1").max(2)}}, `full: group a/ would have 3 fields, at most 2 are allowed {"a/1":[1,1],"a/2":[1,2]} a/ max 2`},
		{"lowered group", Update{Ops: []Op{set("$max/a/", "1"), set("a/3", "1").max(3)}},
			`full: group a/ would have 3 fields, at most 1 are allowed {"a/1":[1,1],"a/2":[1,2]} a/ max 1`},
		{"closed group", Update{Ops: []Op{set("$max/b/", "0"), set("b/1", "1")}}, `full: group b/ would have 1 fields, at most 0 are allowed b/ max 0`},
		{"fields", Update{Ops: []Op{set("n", "1"), del("x"), set("x2", "1")}, Limits: Limits{Fields: 5}},
			`full: field x2: the channel would have 6 fields, at most 5 are allowed {"x2":null} max 5`},
		{"bytes", Update{Ops: []Op{set("n", "55")}, Limits: Limits{Bytes: 18}}, `too_large: the fields of the channel would have 19 bytes, at most 18 are allowed`},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := newScript(t)
			x.apply(full)
			before := x.shown()
			x.expect(x.refusal(test.update), test.want)
			x.expect(x.shown(), before)
		})
	}
}

// refusal applies an update, and returns its error and what the error shows.
func (x *script) refusal(u Update) string {
	x.Helper()
	if u.Writer == "" {
		u.Writer = BackendHolder
	}
	r, err := x.s.Apply(&u, x.now, x.next)
	x.expect(x.logged(r), "")
	refusal, ok := err.(*Refusal)
	if !ok {
		x.Fatalf("got %v, want a Refusal", err)
	}
	parts := []string{refusal.Error()}
	s := refusal.Show(Filter{State: true}, 0)
	if s.Fields != nil {
		parts = append(parts, string(s.Fields))
	}
	if s.Group != "" {
		parts = append(parts, s.Group)
	}
	if s.Max != nil {
		parts = append(parts, fmt.Sprint("max ", *s.Max))
	}
	return strings.Join(parts, " ")
}

// TestPrecedence checks which refusal comes first: the update breaks all rules, and is then
// repaired one rule after the other.
func TestPrecedence(t *testing.T) {
	x := newScript(t)
	x.ops(set("held", "1"), set("text", `"x"`), set("a/1", "1"), set("m", "1"))
	x.by("amy", set("old", "1").own(GraceNever))
	x.end("amy", 1)
	u := from("amy", 1, touch("absent", 0), set("held", "2").claimed(), add("text", 1, 0, 9), add("n", 11, 0, 9),
		set("part", "1").ofHeld("m"), set("a/2", "1").own(0).max(1))
	u.If = []Condition{{Field: "held", Kind: IsAbsent}}
	u.Limits = Limits{Fields: 5, Bytes: 10, Owned: 1}
	for _, step := range []struct {
		want   string
		repair func()
	}{
		{"unavailable: the client is connected elsewhere, or its connection has ended; try again later", func() { u.Generation = 2 }},
		{"conflict: field held: it does not meet the condition", func() { u.If = nil }},
		{"not_found: field absent: there is no such field", func() { u.Ops[0] = touch("held", 0) }},
		{"conflict: field held: another user holds it", func() { u.Ops[1] = set("old", "2") }},
		{"bad_request: field text: its value is not a whole number", func() { u.Ops[2] = add("number", 1, 0, 9) }},
		{"limit: field n: the result 11 is out of bounds", func() { u.Ops[3] = add("n", 9, 0, 9) }},
		{"forbidden: field part: another user holds its parent m", func() { u.Ops[4].HeldParent = false }},
		{"full: field a/2: the client would own 2 fields, at most 1 are allowed", func() { u.Owned = 2 }},
		{"full: group a/ would have 2 fields, at most 1 are allowed", func() { u.Ops[5].GroupMax = 2 }},
		{"full: field number: the channel would have 9 fields, at most 5 are allowed", func() { u.Fields = 9 }},
		{"too_large: the fields of the channel would have 40 bytes, at most 10 are allowed", func() { u.Bytes = 40 }},
		{`{"set":{"a/2":1,"n":9,"number":1,"old":2,"part":1},"until":{"held":0},"back":["old"],"own":{"a/2":["amy"]},"by":"amy"}`, func() {}},
	} {
		x.expect(x.apply(u), step.want)
		step.repair()
	}
}

// TestFullShowsTheFirstFields checks that a refusal shows at most MaxFullFields fields of a full
// group.
func TestFullShowsTheFirstFields(t *testing.T) {
	x := newScript(t)
	for i := range 100 {
		x.ops(set(fmt.Sprintf("a/%03d", i), "1"))
	}
	u := Update{Ops: []Op{set("a/x", "1").max(100)}}
	_, err := x.s.Apply(&u, x.now, x.next)
	fields := err.(*Refusal).Fields
	if len(fields) != MaxFullFields || fields["a/000"] == nil || fields["a/063"] == nil {
		t.Errorf("got %d fields, want the first %d", len(fields), MaxFullFields)
	}
}

// TestRefusalDropsValues checks that a refusal holds about 32 KiB of values, in the order of names,
// and shows the other fields by their ids.
func TestRefusalDropsValues(t *testing.T) {
	fields := map[string]*Field{"d": nil}
	for name, size := range map[string]int{"a": 20_000, "b": 20_000, "c": 12_000, "e": 1000, "f": 10} {
		fields[name] = &Field{ID: 7, Value: bytes.Repeat([]byte("1"), size)}
	}
	shown := Refuse(Unmet, Details{Field: "a", Fields: fields}).Show(Filter{State: true}, 0).Fields
	got, err := ParseFields(shown)
	if err != nil {
		t.Fatal(err)
	}
	var sizes []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		size := -1
		if f := got[name]; f != nil {
			size = len(f.Value)
		}
		sizes = append(sizes, fmt.Sprint(name, " ", size))
	}
	if want := "[a 20000 b 0 c 12000 d -1 e 0 f 10]"; fmt.Sprint(sizes) != want || fields["b"].Value != nil {
		t.Errorf("got %v, want %s", sizes, want)
	}
	ids := `{"a":[7],"b":[7],"c":[7],"d":null,"e":[7],"f":[7]}`
	if shown := Refuse(Unmet, Details{Fields: fields}).Show(Filter{State: true}, 1).Fields; string(shown) != ids {
		t.Errorf("within one byte: %.200s, want %s", shown, ids)
	}
}

// TestRefusalAfterExpiry checks that a refused update removes what is due, and nothing else.
func TestRefusalAfterExpiry(t *testing.T) {
	x := newScript(t)
	x.ops(set("a", "1").ttl(5*time.Millisecond), set("b", "2"))
	x.expect(x.at(5).ops(set("b", "3"), touch("a", 0)), `{"gone":{"a":"expired"}} not_found: field a: there is no such field`)
	x.expect(x.shown(), `{"b":[1,2]}`)
}
