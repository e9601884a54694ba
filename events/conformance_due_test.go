package events

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func testChangedNow(t *testing.T, open opener) {
	f := open(t)
	ok(t, f.Changed(t.Context(), 3, "u:ann", Grace))
	ok(t, f.Changed(t.Context(), 3, "u:ann", Grace))
	ok(t, f.Changed(t.Context(), 4, "u:bob", Grace))
	equal(t, "due", f.due(t, 3), []string{"u:ann"})
	equal(t, "due while claimed", f.due(t, 3), nil)
	equal(t, "due in the other shard", f.due(t, 4), []string{"u:bob"})
}

func testChangedLater(t *testing.T, open opener) {
	f := open(t)
	equal(t, "told", f.changed(t, "u:ann", true), true)
	ok(t, f.Changed(t.Context(), 3, "u:ann", Grace))
	equal(t, "due", f.due(t, 3), nil)
	f.pass(t, Grace/2)
	ok(t, f.Changed(t.Context(), 3, "u:ann", Grace))
	f.pass(t, Grace/2)
	equal(t, "due within the grace of the last change", f.due(t, 3), nil)
	f.pass(t, Grace/2)
	equal(t, "due behind it", f.due(t, 3), []string{"u:ann"})
}

func testChangedEndsClaim(t *testing.T, open opener) {
	f := open(t)
	ok(t, f.Changed(t.Context(), 3, "u:ann", 0))
	old := f.claims(t, 3)[0]
	ok(t, f.Changed(t.Context(), 3, "u:ann", 0))
	done, err := f.Settle(t.Context(), 3, Verdict{Claim: old, Present: true, Event: []byte(`"n":1}`)})
	ok(t, err)
	equal(t, "what was true before the change: valid, told", []bool{done.Valid, done.Told}, []bool{false, false})
	equal(t, "events", len(f.take(t, 10).Events), 0)
	equal(t, "due", f.due(t, 3), []string{"u:ann"})
}

func testManyChanged(t *testing.T, open opener) {
	f := open(t)
	const n = 1000 // more of a shard than go together
	equal(t, "told", f.changed(t, "u:0", true), true)
	var changes []Change
	for i := range n {
		changes = append(changes, Change{3 + i%2, fmt.Sprint("u:", i)}, Change{3, "u:0"})
	}
	for _, err := range f.Store.Changed(t.Context(), Grace, changes...) {
		ok(t, err)
	}
	equal(t, "nothing noted", len(f.Store.Changed(t.Context(), Grace)), 0)
	for shard, want := range map[int]int{3: n/2 - 1, 4: n / 2} {
		claims, err := f.Claim(t.Context(), shard, 2*n, hold)
		ok(t, err)
		equal(t, fmt.Sprint("due in shard ", shard), len(claims), want)
	}
	f.pass(t, Grace)
	equal(t, "due after the grace", f.due(t, 3), []string{"u:0"})
}

func testManyChangedFull(t *testing.T, open opener) {
	f := open(t)
	f.bound(bounds{due: 2})
	ok(t, f.Changed(t.Context(), 3, "u:ann", 0))
	errs := f.Store.Changed(t.Context(), 0, Change{3, "u:bob"}, Change{3, "u:cat"}, Change{4, "u:dan"}, Change{3, "u:ann"}, Change{3, "u:bob"})
	for i, want := range []error{nil, ErrFull, nil, nil, nil} {
		fails(t, fmt.Sprint("change ", i), errs[i], want)
	}
	due := f.due(t, 3)
	slices.Sort(due)
	equal(t, "due", due, []string{"u:ann", "u:bob"})
	equal(t, "due in the other shard", f.due(t, 4), []string{"u:dan"})
}

func testDueFull(t *testing.T, open opener) {
	f := open(t)
	f.bound(bounds{due: 2, watchBytes: 100})
	ok(t, f.Changed(t.Context(), 3, "u:ann", 0))
	ok(t, f.Watch(t.Context(), 3, "d:1", []byte("{}"), time.Hour))
	fails(t, "a third", f.Changed(t.Context(), 3, "u:bob", 0), ErrFull)
	fails(t, "a third", f.Watch(t.Context(), 3, "d:2", []byte("{}"), time.Hour), ErrFull)
	ok(t, f.Changed(t.Context(), 3, "u:ann", 0)) // it is there already
	ok(t, f.Changed(t.Context(), 4, "u:bob", 0))
}

func testClaimEnds(t *testing.T, open opener) {
	f := open(t)
	ok(t, f.Changed(t.Context(), 3, "u:ann", 0))
	first := f.claims(t, 3)[0]
	f.pass(t, hold/2)
	equal(t, "due while claimed", f.due(t, 3), nil)
	f.pass(t, hold/2)
	second := f.claims(t, 3)[0]
	for _, c := range []struct {
		name  string
		claim Claim
		valid bool
	}{{"who slept", first, false}, {"who came after", second, true}, {"the same again", second, false}} {
		done, err := f.Settle(t.Context(), 3, Verdict{Claim: c.claim, Present: true, Event: []byte(`"n":1}`)})
		ok(t, err)
		equal(t, c.name+": valid, told", []bool{done.Valid, done.Told}, []bool{c.valid, c.valid})
	}
	equal(t, "events", numbers(t, f.take(t, 10)), []int{1})
}

func testToldOnce(t *testing.T, open opener) {
	f := open(t)
	for i, c := range []struct{ present, told bool }{
		{false, false}, {true, true}, {true, false}, {false, true}, {false, false}, {true, true},
	} {
		equal(t, fmt.Sprint("told in step ", i), f.changed(t, "c:news", c.present), c.told)
	}
	equal(t, "events", len(f.take(t, 10).Events), 3)
}

func testUntold(t *testing.T, open opener) {
	f := open(t)
	ok(t, f.Changed(t.Context(), 3, "u:ann", 0))
	done, err := f.Settle(t.Context(), 3, Verdict{Claim: f.claims(t, 3)[0], Present: true})
	ok(t, err)
	equal(t, "valid, told", []bool{done.Valid, done.Told}, []bool{true, false})
	equal(t, "events", len(f.take(t, 10).Events), 0)
	equal(t, "told when he is gone", f.changed(t, "u:ann", false), true)
}

func testWatch(t *testing.T, open opener) {
	f := open(t)
	ok(t, f.Watch(t.Context(), 3, "d:1", []byte(`{"a":1}`), time.Minute))
	ok(t, f.Watch(t.Context(), 3, "d:1", []byte(`{"a":2}`), time.Hour)) // the same push, repeated
	equal(t, "due", f.due(t, 3), nil)
	f.pass(t, time.Minute)
	claim := f.claims(t, 3)[0]
	equal(t, "record", string(claim.Record), `{"a":1}`)
	done, err := f.Settle(t.Context(), 3, Verdict{Claim: claim, Event: []byte(`"n":7}`), ID: "mine"})
	ok(t, err)
	equal(t, "valid, told", []bool{done.Valid, done.Told}, []bool{true, true})
	b := f.take(t, 10)
	equal(t, "event", string(b.Events[0].Event[:13]), `{"id":"mine",`)

	ok(t, f.Watch(t.Context(), 3, "d:2", []byte(`{}`), time.Minute))
	f.pass(t, time.Hour)
	done, err = f.Settle(t.Context(), 3, Verdict{Claim: f.claims(t, 3)[0]}) // somebody had acknowledged
	ok(t, err)
	equal(t, "valid, told", []bool{done.Valid, done.Told}, []bool{true, false})
}

func testWatchFull(t *testing.T, open opener) {
	f := open(t)
	f.bound(bounds{due: 100, watchBytes: 10, out: 10, outBytes: 1000, dead: 1, deadBytes: 1000})
	ok(t, f.Watch(t.Context(), 3, "d:1", []byte("12345"), time.Minute))
	ok(t, f.Watch(t.Context(), 3, "d:2", []byte("67890"), time.Minute))
	fails(t, "one byte more", f.Watch(t.Context(), 3, "d:3", []byte("1"), time.Minute), ErrFull)
	f.pass(t, time.Minute)
	for _, c := range f.claims(t, 3) {
		_, err := f.Settle(t.Context(), 3, Verdict{Claim: c})
		ok(t, err)
	}
	ok(t, f.Watch(t.Context(), 3, "d:3", []byte("1234567890"), time.Minute))
	fails(t, "one byte more", f.Watch(t.Context(), 3, "d:4", []byte("1"), time.Minute), ErrFull)
}

func testToldPages(t *testing.T, open opener) {
	f := open(t)
	var want []string
	for i := range 1200 { // above what Redis keeps in one piece
		entry := fmt.Sprintf("u:%04d", i)
		f.changed(t, entry, true)
		if i%2 == 0 {
			f.changed(t, entry, false)
			continue
		}
		want = append(want, entry)
	}
	var all []string
	pages := 0
	for cursor := ""; ; pages++ {
		entries, next, err := f.Told(t.Context(), 3, cursor, 50)
		ok(t, err)
		all = append(all, entries...)
		if cursor = next; cursor == "" {
			break
		}
	}
	slices.Sort(all)
	equal(t, "told present", slices.Compact(all), want)
	if pages < 3 {
		t.Errorf("all came in %d pages", pages+1)
	}
}
