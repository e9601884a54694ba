package events

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestConformance is the contract of [Store], for every implementation.
func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, open opener)
	}{
		{"a change is due at once", testChangedNow},
		{"a change of who is told present is due after the grace", testChangedLater},
		{"a change ends a claim", testChangedEndsClaim},
		{"many changes are noted in one call", testManyChanged},
		{"of many changes those are noted for which there is room", testManyChangedFull},
		{"the due list is bounded", testDueFull},
		{"a claim ends by itself, and its holder is fenced", testClaimEnds},
		{"what is told is told once", testToldOnce},
		{"nothing is told that nobody wants", testUntold},
		{"a watched message is looked at once", testWatch},
		{"watched messages are bounded", testWatchFull},
		{"who is told present is listed in pages", testToldPages},

		{"events have places, ids and times", testPlaces},
		{"events leave the list in order", testSent},
		{"a delivery has about as many bytes as allowed", testTakeBytes},
		{"a lease keeps others away, and fences", testLease},
		{"a lease is renewed", testLeaseRenewed},
		{"an attempt that failed is repeated later", testFailed},
		{"what failed for too long is given up", testExpired},
		{"what is refused is given up", testRefused},
		{"the list is bounded by count", testOutCount},
		{"the list is bounded by bytes", testOutBytes},
		{"dead letters are bounded", testDeadBounds},
		{"dead letters are sent again", testRetry},
		{"dead letters wait for room", testRetryRoom},
	} {
		t.Run(c.name, func(t *testing.T) { eachStore(t, func(t *testing.T, open opener) { c.test(t, open) }) })
	}
}

// claims are the entries that are due now, claimed for 30 s.
func (f *fixture) claims(t *testing.T, shard int) []Claim {
	t.Helper()
	claims, err := f.Claim(t.Context(), shard, 100, hold)
	ok(t, err)
	return claims
}

// due claims and gives only the names.
func (f *fixture) due(t *testing.T, shard int) (entries []string) {
	t.Helper()
	for _, c := range f.claims(t, shard) {
		entries = append(entries, c.Entry)
	}
	return entries
}

// changed notes a change, and looks at it: present is the truth.
func (f *fixture) changed(t *testing.T, entry string, present bool) (told bool) {
	t.Helper()
	ok(t, f.Changed(t.Context(), 3, entry, 0))
	for _, c := range f.claims(t, 3) {
		done, err := f.Settle(t.Context(), 3, Verdict{Claim: c, Present: present, Event: fmt.Appendf(nil, `"is":"%s %v"}`, entry, present)})
		ok(t, err)
		told = told || done.Told
	}
	return told
}

// tell makes n events in shard 3, and gives their bodies' numbers as [fixture.numbers] does.
func (f *fixture) tell(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		f.tellOne(t, fmt.Appendf(nil, `"n":%d}`, i+1))
	}
}

func (f *fixture) tellOne(t *testing.T, event []byte) {
	t.Helper()
	entry := fmt.Sprintf("d:%d", prefixes.Add(1))
	ok(t, f.Watch(t.Context(), 3, entry, []byte("{}"), time.Millisecond))
	f.pass(t, time.Millisecond)
	for _, c := range f.claims(t, 3) {
		done, err := f.Settle(t.Context(), 3, Verdict{Claim: c, Event: event})
		if !done.Valid || !done.Told || err != nil {
			t.Fatalf("settled %s: %+v, %v", c.Entry, done, err)
		}
		f.givenUp += done.GivenUp
	}
}

// take leases shard 3 for a minute.
func (f *fixture) take(t *testing.T, n int) Batch {
	t.Helper()
	b, err := f.Take(t.Context(), 3, n, time.Minute)
	ok(t, err)
	return b
}

func number(t *testing.T, event []byte) int {
	t.Helper()
	var v struct{ N int }
	ok(t, json.Unmarshal(event, &v))
	return v.N
}

func numbers(t *testing.T, b Batch) (ns []int) {
	t.Helper()
	for _, e := range b.Events {
		ns = append(ns, number(t, e.Event))
	}
	return ns
}

// dead are the dead letters of shard 3 as reason and number.
func (f *fixture) dead(t *testing.T) (letters []string) {
	t.Helper()
	all, err := f.Dead(t.Context(), 3, 0, 100)
	ok(t, err)
	for _, l := range all {
		letters = append(letters, fmt.Sprintf("%s %d", l.Reason, number(t, l.Event)))
	}
	return letters
}

// long is an event of about so many bytes.
func long(n, bytes int) []byte {
	return fmt.Appendf(nil, `"n":%d,"x":"%s"}`, n, strings.Repeat("x", bytes))
}
