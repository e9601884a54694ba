package member

import (
	"sync"

	"switchboard/internal/slots"
)

// batchSize is how many channels and clients are bound again in one batch.
const batchSize = 128

// item is something that this server holds and that the store may have lost.
type item struct {
	kind itemKind
	name string
}

type itemKind uint8

const (
	ofChannel itemKind = iota
	ofClient
)

// need says which parts of an item the store may have lost.
type need uint8

const (
	needOwn  need = 1 << iota // in the slot of the name: the servers of a channel, the record of a client
	needUser                  // in the slot of the client's user: the user's list of clients
	needHeld                  // in the slot of this server: its lists of channels and clients
	needList                  // in the slot of the list of channels that has the channel

	needAll = needOwn | needUser | needHeld | needList
)

// worklist is what must be compared with the store, and bound again where it differs. An item
// leaves the list when it is done. A failure of the store adds what it concerns, also what is
// already done.
type worklist struct {
	mu        sync.Mutex // guards the fields below
	changed   slots.Set  // of failures whose items are not in the list yet
	formerID  string     // that this server had when it was declared dead, until all is bound under the new id
	needs     map[item]need
	order     []item            // the items of needs, first in first out; and some that have left
	failed    []item            // items of needs that failed in this run
	started   int               // items that were taken and are neither done nor failed
	rest      slots.Set         // in which acknowledged messages and owners of fields must be checked, after all items
	checking  bool              // these checks run
	uncertain map[item]struct{} // calls about them had no answer since the last beat began
	ripe      map[item]struct{} // calls about them had no answer before the last beat began
	running   bool
}

func newWorklist() worklist {
	return worklist{needs: map[item]need{}, uncertain: map[item]struct{}{}, ripe: map[item]struct{}{}}
}

// change notes a failure of the store that concerns the slots.
func (w *worklist) change(of *slots.Set) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed.AddAll(of)
}

// renamed notes that this server has a new id, so that everything must be bound under it.
func (w *worklist) renamed(formerID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.formerID, w.changed = formerID, slots.All()
}

// noAnswer notes that a call about an item has an unknown outcome: the store may still execute it.
func (w *worklist) noAnswer(i item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.uncertain[i] = struct{}{}
}

// beatBegins must come before the first call of a beat. If the beat succeeds, the store has
// executed what it had received before, so the outcomes of earlier calls do not change any more.
func (w *worklist) beatBegins() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.uncertain {
		w.ripe[i] = struct{}{}
	}
	clear(w.uncertain)
}

// beatSucceeded lists the items whose calls had no answer before the beat.
func (w *worklist) beatSucceeded() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range sorted(w.ripe) {
		w.addLocked(i, needAll)
	}
	clear(w.ripe)
}

// add lists an item.
func (w *worklist) add(i item, needs need) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addLocked(i, needs)
}

func (w *worklist) addLocked(i item, needs need) {
	if needs == 0 {
		return
	}
	before, listed := w.needs[i]
	if w.needs[i] = before | needs; !listed {
		w.order = append(w.order, i)
	}
}

// begin marks the list as being worked on. It returns false if it already is, or if it is empty.
func (w *worklist) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running || !w.pendingLocked() {
		return false
	}
	w.running = true
	return true
}

// end ends what begin began. What failed is tried again in the next run.
func (w *worklist) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = false
	w.order, w.failed = append(w.order, w.failed...), nil
}

// takeChanged returns the slots of new failures, and empties them.
func (w *worklist) takeChanged() (of slots.Set) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of, w.changed = w.changed, slots.Set{}
	w.rest.AddAll(&of)
	return of
}

// hasChanged reports whether takeChanged would return slots.
func (w *worklist) hasChanged() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.changed.Empty()
}

// take takes a batch of items.
func (w *worklist) take() (batch map[item]need, formerID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	batch = make(map[item]need, batchSize)
	for len(batch) < batchSize && len(w.order) > 0 {
		i := w.order[0]
		w.order = w.order[1:]
		if needs, listed := w.needs[i]; listed {
			batch[i] = needs
			delete(w.needs, i)
		}
	}
	w.started += len(batch)
	return batch, w.formerID
}

// finish puts the failed items of a batch back.
func (w *worklist) finish(batch map[item]need, failed []item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started -= len(batch)
	for _, i := range failed {
		before, listed := w.needs[i]
		if w.needs[i] = before | batch[i]; !listed {
			w.failed = append(w.failed, i)
		}
	}
}

// takeRest returns the slots for the checks after the items. ok is false if there are none, or if
// an item failed: the lost messages of a channel reach its readers after it is bound.
func (w *worklist) takeRest() (of slots.Set, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rest.Empty() || len(w.needs) > 0 {
		return of, false
	}
	of, w.rest, w.checking = w.rest, slots.Set{}, true
	w.formerID = ""
	return of, true
}

// restChecked ends the checks. If they failed, they are repeated in the next run.
func (w *worklist) restChecked(of *slots.Set, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.checking = false; !ok {
		w.rest.AddAll(of)
	}
}

// mayHaveLost reports whether the store may have lost messages that are not checked yet.
func (w *worklist) mayHaveLost() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mayHaveLostLocked()
}

func (w *worklist) mayHaveLostLocked() bool {
	return w.checking || !w.rest.Empty() || !w.changed.Empty()
}

// pending reports whether anything is to be done.
func (w *worklist) pending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pendingLocked()
}

func (w *worklist) pendingLocked() bool {
	return len(w.needs)+w.started > 0 || w.mayHaveLostLocked()
}
