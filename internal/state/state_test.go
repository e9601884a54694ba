package state

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"switchboard/internal/wire"
)

// TestFold checks that the entries of a few updates give the fields that the state holds.
func TestFold(t *testing.T) {
	s, m, id := New(), NewMap(0), int64(0)
	next := func() int64 { id++; return id }
	for i, u := range []Update{
		{Ops: []Op{{Field: "turn", Kind: Set, Value: []byte(`"bob"`)}, {Field: "n", Kind: Add, By: 2, Min: 0, Max: 5}}, Writer: BackendHolder},
		{Ops: []Op{{Field: "member/amy", Kind: Set, Value: []byte(`1`), Own: Own, Grace: GraceNever}}, Writer: "u:amy", Client: "amy/phone", Generation: 1},
		{Ops: []Op{{Field: "p/color", Kind: Set, Value: []byte(`2`), Parent: "member/amy", HeldParent: true}}, Writer: "u:amy"},
		{Ops: []Op{{Field: "n", Kind: Add, By: 2, Min: 0, Max: 5}}, If: []Condition{{Field: "turn", Kind: Exists}}},
	} {
		r, err := s.Apply(&u, 1000, next)
		if err != nil {
			t.Fatalf("update %d: %v", i, err)
		}
		for _, logged := range r.Entries {
			e, err := DecodeEntry(logged.Entry.Encode())
			if err != nil {
				t.Fatal(err)
			}
			m.Apply(logged.ID, e)
		}
	}
	_, err := s.Apply(&Update{Ops: []Op{{Field: "n", Kind: Add, By: 2, Min: 0, Max: 5}}}, 1000, next)
	if refusal, ok := err.(*Refusal); !ok || refusal.Err.Code != wire.OutOfRange || string(refusal.Fields["n"].Value) != "4" {
		t.Errorf("got %v, want limit with the value 4", err)
	}
	for _, step := range []func(int64, func() int64, Connection) Result{
		func(now int64, next func() int64, c Connection) Result { return s.End(now, next, c) }, s.Disown,
	} {
		for _, logged := range step(2000, next, Connection{"amy/phone", 1, ""}).Entries {
			m.Apply(logged.ID, logged.Entry)
		}
		names, fields, _ := s.Read(2000, "", "", 0, 0)
		want := NewMap(id)
		for i, name := range names {
			want.Fields[name] = fields[i].Show()
		}
		if !reflect.DeepEqual(m, want) {
			t.Errorf("the fold is %+v, the state %+v", m, want)
		}
	}
	if len(m.Fields) != 4 {
		t.Errorf("%v is left, want all: the field of the owner stays", m.Names())
	}
}

// TestReadPages reads a group in pages of one field.
func TestReadPages(t *testing.T) {
	s, id := New(), int64(0)
	for _, name := range []string{"c", "b/2", "a", "b/3", "b/1"} {
		u := Update{Ops: []Op{{Field: name, Kind: Set, Value: []byte("1")}}, Writer: BackendHolder}
		if _, err := s.Apply(&u, 1000, func() int64 { id++; return id }); err != nil {
			t.Fatal(err)
		}
	}
	cursor := ""
	for _, want := range []string{"b/1", "b/2", "b/3"} {
		names, fields, next := s.Read(1000, "b/", cursor, 1, 0)
		if len(names) != 1 || names[0] != want || len(fields) != 1 || (next == "") != (want == "b/3") {
			t.Errorf("after %q: %v and next %q, want %s", cursor, names, next, want)
		}
		cursor = next
	}
}

// BenchmarkApply sets one field of 1024 that have a lease. "earliest" sets the field that ends
// first, so that the next update looks at all fields.
func BenchmarkApply(b *testing.B) {
	const fields = 1024
	for name, changed := range map[string]int{"any": 7, "earliest": 0} {
		b.Run(name, func(b *testing.B) {
			s, now := New(), int64(1000)
			set := func(i int) {
				now++
				op := Op{Field: fmt.Sprint("f/", i), Kind: Set, Value: []byte(`{"n":1}`), TTL: time.Duration(i+1) * 24 * time.Hour}
				if _, err := s.Apply(&Update{Ops: []Op{op}, Writer: BackendHolder}, now, func() int64 { return now }); err != nil {
					b.Fatal(err)
				}
			}
			for i := range fields {
				set(i)
			}
			b.ReportAllocs()
			for b.Loop() {
				set(changed)
			}
		})
	}
}
