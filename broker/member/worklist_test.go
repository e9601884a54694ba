package member

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"switchboard/internal/slots"
)

// takeNames takes a batch and returns the names in it, sorted.
func (w *worklist) takeNames() (batch map[item]need, names []string) {
	batch, _ = w.take()
	for _, i := range sorted(batch) {
		names = append(names, i.name)
	}
	return batch, names
}

// TestWorklist checks that done items leave the list, and that what failed or changed meanwhile
// comes again.
func TestWorklist(t *testing.T) {
	w := newWorklist()
	expect := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	if w.pending() || w.begin() {
		t.Error("an empty list is pending")
	}
	for _, name := range []string{"a", "b", "c"} {
		w.add(item{ofChannel, name}, needOwn)
	}
	w.add(item{ofClient, "a"}, 0)
	if !w.begin() || w.begin() {
		t.Error("the list is not begun once")
	}
	batch, names := w.takeNames()
	expect("first batch", names, []string{"a", "b", "c"})
	w.add(item{ofChannel, "a"}, needHeld) // a second failure concerns an item under way
	w.finish(batch, []item{{ofChannel, "b"}})
	batch, names = w.takeNames()
	expect("after a failure that concerns a", names, []string{"a"})
	expect("its needs", batch[item{ofChannel, "a"}], needHeld)
	w.finish(batch, nil)
	if _, names = w.takeNames(); names != nil {
		t.Errorf("%v is tried again in the same run", names)
	}
	if !w.pending() {
		t.Error("the failed item is not pending")
	}
	w.end()
	if !w.begin() {
		t.Fatal("no second run")
	}
	w.add(item{ofChannel, "b"}, needHeld)
	batch, names = w.takeNames()
	expect("second run", names, []string{"b"})
	expect("its needs", batch[item{ofChannel, "b"}], needOwn|needHeld)
	w.finish(batch, nil)
	w.end()
	if w.pending() {
		t.Error("pending although all is done")
	}
}

// TestWorklistBatches checks the size and the order of batches.
func TestWorklistBatches(t *testing.T) {
	w := newWorklist()
	for n := range batchSize + 2 {
		w.add(item{ofClient, fmt.Sprintf("%04d", n)}, needOwn)
		w.add(item{ofClient, "0001"}, needUser)
	}
	first, _ := w.take()
	second, _ := w.take()
	if len(first) != batchSize || len(second) != 2 || first[item{ofClient, "0001"}] != needOwn|needUser {
		t.Errorf("batches of %d and %d", len(first), len(second))
	}
	if names := slices.Collect(maps.Keys(second)); slices.Contains(names, item{ofClient, "0001"}) {
		t.Errorf("the second batch is %v", names)
	}
}

// TestCallsWithoutAnswer checks that a call without an answer lists its item only after a beat that
// began later.
func TestCallsWithoutAnswer(t *testing.T) {
	w := newWorklist()
	w.noAnswer(item{ofClient, "early"})
	w.beatBegins()
	w.noAnswer(item{ofClient, "late"})
	if w.pending() {
		t.Error("pending before the beat has succeeded")
	}
	w.beatBegins() // the beat before failed
	w.noAnswer(item{ofClient, "later"})
	w.beatSucceeded()
	if _, names := w.takeNames(); !slices.Equal(names, []string{"early", "late"}) {
		t.Errorf("%v are compared", names)
	}
	if w.mayHaveLost() {
		t.Error("a call without an answer loses no message")
	}
}

// TestChecksAfterTheItems checks that messages are checked in the slots of all failures, after all
// items are bound, and again if the check fails or the store fails meanwhile.
func TestChecksAfterTheItems(t *testing.T) {
	w := newWorklist()
	var one, other slots.Set
	one.Add(1, 1)
	other.Add(2, 2)
	w.change(&one)
	if of := w.takeChanged(); of != one || !w.mayHaveLost() {
		t.Error("the failure is not taken")
	}
	w.add(item{ofChannel, "a"}, needOwn)
	if _, ok := w.takeRest(); ok {
		t.Error("messages are checked before the items")
	}
	batch, _ := w.take()
	w.finish(batch, nil)
	of, ok := w.takeRest()
	if !ok || of != one || !w.mayHaveLost() {
		t.Error("messages are not checked")
	}
	w.change(&other)
	w.takeChanged()
	w.restChecked(&of, false)
	of, ok = w.takeRest()
	if !ok || !of.Has(1) || !of.Has(2) {
		t.Error("messages are not checked again")
	}
	w.restChecked(&of, true)
	if w.mayHaveLost() || w.pending() {
		t.Error("pending after the checks")
	}
}
