package peer

import (
	"sync"
	"time"
)

const (
	maxQueued      = 16384
	maxQueuedBytes = 8 << 20
	// maxSpare is the largest slice of hints that is reused, so that a link that was stuck once does
	// not hold its memory forever.
	maxSpare = 1024
)

// outbox is the queue of hints to one server, and the count of all of them. It outlives the links
// to the server.
type outbox struct {
	wake chan struct{} // one slot: a hint was added or dropped since the last take
	turn chan struct{} // one slot, which a link holds while it uses the outbox
	// unlistedSince is when the server left the list, or when its first hint came before it was on the
	// list. It is zero while the server is on the list. Guarded by outboxes.mu.
	unlistedSince time.Time
	// countedAs is this server's id on the last link to the server, under which the server compares
	// the numbers. Guarded by turn.
	countedAs string

	mu         sync.Mutex // guards the fields below
	up         bool       // whether there is a link
	left       bool       // whether no more hints are sent
	addressed  uint64     // all hints so far, including dropped ones
	number     uint64     // of hints[0]
	hints      []Hint     // consecutive: none was dropped between them
	bytes      int
	overflowed bool // a hint was dropped; add drops all others until take, so that hints stay consecutive
}

// newOutbox returns an outbox whose first hint has the number first.
func newOutbox(first uint64) *outbox {
	return &outbox{wake: make(chan struct{}, 1), turn: make(chan struct{}, 1), addressed: first}
}

// add counts h and queues it. It returns false if h was dropped: there is no link, the queue is
// full, or the name is too long. If discard is true, add drops h and returns true, for fault
// injection.
func (o *outbox) add(h Hint, discard bool) bool {
	if len(h.Data) > maxData {
		h.Data = nil // the receiver reads it from the store
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	number := o.addressed
	o.addressed++
	if !o.up || o.left {
		return false
	}
	o.wakeLocked()
	if discard {
		return true
	}
	size := h.size()
	o.overflowed = o.overflowed || len(h.Name) > maxName || len(o.hints) >= maxQueued || o.bytes+size > maxQueuedBytes
	if o.overflowed {
		return false
	}
	if len(o.hints) == 0 {
		o.number = number
	}
	o.hints = append(o.hints, h)
	o.bytes += size
	return true
}

// miss counts a hint that is not sent.
func (o *outbox) miss() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.addressed++
	if o.up && !o.left {
		o.overflowed = true
		o.wakeLocked()
	}
}

func (o *outbox) wakeLocked() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take returns and empties the queue. number is the number of hints[0], or of the next hint if
// there are none. whole is whether no hint was dropped after hints. The queue reuses spare, which
// the caller must not use any more.
func (o *outbox) take(spare []Hint) (hints []Hint, number uint64, whole bool) {
	clear(spare)
	if cap(spare) > maxSpare {
		spare = nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	hints, number = o.hints, o.number
	if len(hints) == 0 {
		number = o.addressed
	}
	o.hints, o.bytes, o.overflowed = spare[:0], 0, false
	return hints, number, number+uint64(len(hints)) == o.addressed
}

// open records that there is a link. From now on add queues hints.
func (o *outbox) open() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.up = true
}

// leave makes add drop all hints.
func (o *outbox) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left = true
}

// close records that the link is gone, and returns how many hints were queued.
func (o *outbox) close() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(o.hints)
	o.up, o.hints, o.bytes, o.overflowed = false, nil, 0, false
	return n
}

// count returns the number of the next hint.
func (o *outbox) count() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.addressed
}
