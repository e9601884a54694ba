package state

import (
	"flag"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"switchboard/internal/longtest"
)

var (
	oneSeed   = flag.Int64("seed", -1, "run this seed only, and print its trace")
	manySeeds = flag.Uint64("seeds", longtest.Seeds(40, 200), "how many seeds to run")
	steps     = flag.Int("steps", 300, "how many steps a run has")
)

// TestModel compares the state, after each of many random steps, with an oracle and with the fold
// of the log.
func TestModel(t *testing.T) {
	eachSeed(t, func(w *world) {
		for i := 0; i < *steps && w.wrong == ""; i++ {
			w.step()
		}
	})
}

// eachSeed runs a world for each seed, and fails if one of them goes wrong.
func eachSeed(t *testing.T, run func(*world)) {
	t.Helper()
	first, last := uint64(0), *manySeeds
	if *oneSeed >= 0 {
		first, last = uint64(*oneSeed), uint64(*oneSeed)+1
	}
	for seed := first; seed < last; seed++ {
		w := newWorld(seed)
		run(w)
		trace := strings.Join(w.trace[max(0, len(w.trace)-12):], "\n")
		if w.wrong != "" {
			t.Fatalf("%s\n\nseed %d: %s\ngo test ./internal/state -run %s -seed=%d", trace, seed, w.wrong, t.Name(), seed)
		}
		if *oneSeed >= 0 {
			t.Log(strings.Join(w.trace, "\n"))
		}
	}
}

// check compares the state with the oracle and the fold, and its parts with each other.
func (w *world) check() {
	w.compareOracle()
	w.compareFold("after the step")
	w.checkLimits()
	for _, wrong := range w.state.check() {
		w.fail("%s", wrong)
	}
}

// check returns what is inconsistent in a state without fields that are due.
func (s *State) check() (wrong []string) {
	report := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	bytes, end := 0, int64(0)
	for name, f := range s.fields.all() {
		bytes += len(name) + len(f.Value)
		if until := f.Until(); until > 0 && (end == 0 || until < end) {
			end = until
		}
		if _, listed := s.children[f.Parent][name]; listed != (f.Parent != "") {
			report("field %s: listed as a part of %s: %v", name, f.Parent, listed)
		}
		if parent := s.fields.get(f.Parent); f.Parent != "" && (parent == nil || parent.Parent != "") {
			report("field %s: its parent %s is absent, or a part itself", name, f.Parent)
		}
		if !slices.IsSorted(f.Owners) || len(slices.Compact(slices.Clone(f.Owners))) != len(f.Owners) {
			report("field %s: owners %v", name, f.Owners)
		}
		connected := false
		for _, client := range f.Owners {
			o := s.owners[client]
			if o == nil {
				report("field %s: owner %s is not known", name, client)
				continue
			}
			if _, found := o.fields[name]; !found {
				report("field %s: owner %s does not know it", name, client)
			}
			connected = connected || o.ended == 0
		}
		if owned := len(f.Owners) > 0; (f.Away != 0) != (owned && !connected) || !owned && f.Grace != 0 {
			report("field %s: away %d, grace %d, owners %v, connected %v", name, f.Away, f.Grace, f.Owners, connected)
		}
	}
	if bytes != s.bytes {
		report("%d bytes are counted, the fields have %d", s.bytes, bytes)
	}
	if s.nextEnd != unknownEnd && s.nextEnd != end {
		report("the next field ends at %d, the state has %d", end, s.nextEnd)
	}
	for client, o := range s.owners {
		for name := range o.fields {
			if f := s.fields.get(name); f == nil || !slices.Contains(f.Owners, client) {
				report("client %s: it does not own %s", client, name)
			}
		}
	}
	for parent, children := range s.children {
		for name := range children {
			if f := s.fields.get(name); f == nil || f.Parent != parent {
				report("field %s: it is not a part of %s", name, parent)
			}
		}
	}
	return wrong
}

// compareOracle compares all fields and generations with the oracle.
func (w *world) compareOracle() {
	got := map[string]oracleField{}
	for name, f := range w.state.fields.all() {
		got[name] = withOwners(oracleField{
			id: f.ID, value: string(f.Value), lease: f.Lease, away: f.Away, grace: f.Grace, holder: f.Holder, parent: f.Parent,
		}, slices.Clone(f.Owners))
		if again, err := ParseRecord(string(f.AppendRecord(nil))); err != nil || !reflect.DeepEqual(again, f) {
			w.fail("field %s: the record becomes %+v: %v", name, again, err)
		}
	}
	if !maps.Equal(got, w.oracle.fields) {
		w.fail("the fields are\n%v\nthe oracle has\n%v", got, w.oracle.fields)
	}
	if got, want := slices.Sorted(maps.Keys(w.state.owners)), slices.Sorted(maps.Keys(w.oracle.conns)); !slices.Equal(got, want) {
		w.fail("clients %v are known, the oracle knows %v", got, want)
	}
}

// compareFold compares what readers see with the fold of the log, without fields that are due.
func (w *world) compareFold(when string) {
	names, fields, more := w.state.Read(w.now, "", "", 0, 0)
	got := map[string]Shown{}
	for i, name := range names {
		got[name] = fields[i].Show()
	}
	if table := maps.Collect(w.table.shown()); w.table.ID != w.fold.ID || !reflect.DeepEqual(table, w.fold.Fields) {
		w.fail("%s, the table has\n%v\nthe fold has\n%v", when, table, w.fold.Fields)
	}
	if !slices.IsSortedFunc(w.table.rows, func(a, b row) int { return strings.Compare(a.name, b.name) }) {
		w.fail("%s, the table is not in order", when)
	}
	want := &Map{Fields: maps.Clone(w.fold.Fields)}
	want.Expire(w.now)
	for name, f := range want.Fields {
		if len(f.Owners) == 0 { // an empty list in the log
			f.Owners = nil
		}
		want.Fields[name] = f
	}
	if more != "" || !reflect.DeepEqual(got, want.Fields) {
		w.fail("%s, readers see\n%v\nthe fold has\n%v", when, got, want.Fields)
	}
}

// shown returns the fields by name.
func (t *Table) shown() iter.Seq2[string, Shown] {
	return func(yield func(string, Shown) bool) {
		for name, f := range t.All() {
			if !yield(name, *f) {
				return
			}
		}
	}
}

// checkLimits checks the limits that hold at every id.
func (w *world) checkLimits() {
	for group, limit := range groupMaxes {
		if n := countFields(w.oracle.fields, group); n > limit {
			w.fail("group %s has %d fields, at most %d are allowed", group, n, limit)
		}
	}
	if n := w.state.fields.len(); w.limits.Fields > 0 && n > w.limits.Fields {
		w.fail("there are %d fields, at most %d are allowed", n, w.limits.Fields)
	}
	if n := sumBytes(w.oracle.fields); w.limits.Bytes > 0 && n > w.limits.Bytes {
		w.fail("there are %d bytes, at most %d are allowed", n, w.limits.Bytes)
	}
	for client, o := range w.state.owners {
		if w.limits.Owned > 0 && len(o.fields) > w.limits.Owned {
			w.fail("client %s owns %d fields, at most %d are allowed", client, len(o.fields), w.limits.Owned)
		}
	}
}

// checkReasons checks why the fields of an entry end: fields that are not due end because their
// owners have left.
func (w *world) checkReasons(e *Entry) {
	for name, reason := range e.Gone {
		want, found := w.ending[name]
		if !found {
			want = Left
		}
		if reason != want {
			w.fail("field %s: it ends because it has %s, want %s", name, reason, want)
		}
		_, set := e.Set[name]
		if _, until := e.Until[name]; until && !set {
			w.fail("field %s: it is gone, and the entry has an end of it", name)
		}
	}
}

// checkRefusal checks that a refusal shows the current values.
func (w *world) checkRefusal(r *Refusal) {
	for name, f := range r.Fields {
		current := w.state.fields.get(name)
		if (f == nil) != (current == nil) || f != nil && !reflect.DeepEqual(f.Show(), current.Show()) {
			w.fail("the refusal shows %s as %v, it is %v", name, f, current)
		}
	}
	if r.Field != "" && !strings.HasPrefix(r.Err.Message, "field "+r.Field+": ") {
		w.fail("the message %q does not begin with the field %s", r.Err.Message, r.Field)
	}
}
