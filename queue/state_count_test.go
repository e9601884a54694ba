package queue

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"switchboard/internal/meter"
	"switchboard/internal/state"
)

// testStateCount checks that fields are counted by the prefix of their names and by that of their
// parents, without those that are due.
func testStateCount(t *testing.T, open opener) {
	f := open(t, Options{})
	groups := []state.FieldGroup{{Prefix: "seat/"}, {Prefix: "live:", Parents: true}, {Prefix: "none/"}}
	count := func(want ...int) StatePage {
		t.Helper()
		o := f.ReadStates(t.Context(), []StateRead{{Channel: room, Fields: []string{"rules", "x", "live:b"}, Count: groups}})[0]
		ok(t, o.Err)
		if !slices.Equal(o.Value.Counts, want) {
			t.Errorf("counted %v, want %v", o.Value.Counts, want)
		}
		return o.Value
	}
	names := func(p StatePage) (names []string) {
		for _, f := range p.Fields {
			names = append(names, f.Name)
		}
		return names
	}
	if p := count(0, 0, 0); p.Ends != 0 || len(p.Fields) != 0 {
		t.Errorf("a channel without a state: %+v", p)
	}
	leased := func(op state.Op) state.Op { op.TTL = time.Minute; return op }
	must(f.update(t, set("rules", "1")))(t)
	must(f.update(t, leased(set("live:a", "1")), leased(part(set("seat/1", "1"), "live:a")), leased(part(set("seat/2", "1"), "live:a"))))(t)
	must(f.update(t, set("live:b", "1"), part(set("seat/3", "1"), "live:b"), part(set("other", "1"), "live:b")))(t)
	must(f.update(t, set("seat/4", "1"), part(set("seat/5", "1"), "rules"), set("seatless", "1")))(t)
	p := count(5, 4, 0)
	if got := names(p); !slices.Equal(got, []string{"rules", "live:b"}) || p.ID == 0 {
		t.Errorf("read %v", got)
	}
	if left := p.Ends - p.Clock; left <= 0 || left > time.Minute.Milliseconds() {
		t.Errorf("the next field ends in %d ms", left)
	}
	f.advance(t, time.Minute) // the leases have passed, and no change has removed the fields
	if p := count(3, 2, 0); p.Expired != 3 || p.Ends != 0 {
		t.Errorf("%d fields are due, the next one ends at %d", p.Expired, p.Ends)
	}
	f.StepStates(t.Context(), []StateStep{{Channel: room, Kind: Sweep}})
	if p := count(3, 2, 0); p.Expired != 0 {
		t.Errorf("%d fields are due after a sweep", p.Expired)
	}
	must(f.update(t, state.Op{Field: "live:b", Kind: state.Delete}))(t)
	count(2, 0, 0)
	other := f.ReadStates(t.Context(), []StateRead{{Channel: room, Fields: []string{"rules"}}, {Channel: room, Count: groups[:1]}, {Channel: room, Prefix: "seat/"}})
	if len(other[0].Value.Fields) != 1 || other[1].Value.Counts[0] != 2 || len(other[1].Value.Fields) != 0 || len(other[2].Value.Fields) != 2 {
		t.Errorf("three reads at once: %+v", other)
	}
}

// testStateBrief checks that brief fields have the values and ends of the fields, and no more.
func testStateBrief(t *testing.T, open opener) {
	f := open(t, Options{})
	leased := part(set("seat/1", `{"a":"1 2\n"}`), "live:a")
	leased.TTL, leased.Holder = time.Minute, "u:amy"
	must(f.update(t, set("live:a", "1"), leased))(t)
	reads := []StateRead{{Channel: room, Prefix: "seat/"}, {Channel: room, Fields: []string{"seat/1", "x"}}}
	for _, whole := range reads {
		brief := whole
		brief.Brief = true
		list := f.ReadStates(t.Context(), []StateRead{whole, brief})
		ok(t, list[0].Err)
		ok(t, list[1].Err)
		want := list[0].Value.Fields[0]
		if want.Lease == 0 || want.Holder == "" || want.Parent == "" || want.ID == 0 {
			t.Fatalf("the field is %+v", want.Field)
		}
		want.Field = &state.Field{Value: want.Value, Lease: want.Lease, Away: want.Away}
		if got := list[1].Value.Fields; len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("read %+v, want %+v", got[0].Field, want.Field)
		}
		if list[0].Value.ID != list[1].Value.ID {
			t.Error("the ids of the pages differ")
		}
	}
}

// testStateCountKeep checks that a state that has ended has no fields to count.
func testStateCountKeep(t *testing.T, open opener) {
	f := open(t, Options{})
	u := &state.Update{Ops: []state.Op{set("seat/1", "1")}}
	u.Keep = time.Minute
	must(f.AppendChannel(t.Context(), ChannelPush{Channel: room, Update: u}))(t)
	f.advance(t, time.Minute)
	o := f.ReadStates(t.Context(), []StateRead{{Channel: room, Fields: []string{"seat/1"}, Count: []state.FieldGroup{{Prefix: "seat/"}}}})[0]
	ok(t, o.Err)
	if o.Value.Counts[0] != 0 || len(o.Value.Fields) != 0 {
		t.Errorf("%+v", o.Value)
	}
}

// testStateCountCost checks that the cost of a count does not depend on the size of the state, and
// that fields that are due cost what looking at them does.
func testStateCountCost(t *testing.T, open opener) {
	f := open(t, Options{})
	u := &state.Update{}
	for i := range 2000 {
		u.Ops = append(u.Ops, state.Op{Field: fmt.Sprint("seat/", i), Kind: state.Set, Value: []byte("1"), TTL: time.Minute})
	}
	must(f.AppendChannel(t.Context(), ChannelPush{Channel: room, Update: u}))(t)
	cost := func() int {
		m := new(meter.Meter)
		ok(t, f.ReadStates(meter.With(t.Context(), m), []StateRead{{Channel: room, Count: []state.FieldGroup{{Prefix: "seat/"}}}})[0].Err)
		return m.Bytes()
	}
	if n := cost(); n > 200 {
		t.Errorf("a count of 2000 fields costs %d bytes", n)
	}
	f.advance(t, time.Minute)
	if n := cost(); n < 2000*recordBytes/2 {
		t.Errorf("a count with 2000 fields that are due costs %d bytes", n)
	}
}
