package peer

import "sync"

const (
	maxQueued      = 16384
	maxQueuedBytes = 8 << 20
	// keepQueue is the largest slice of hints that is used again: a link that was stuck
	// once need not hold its memory for ever.
	keepQueue = 1024
)

// outbox is the queue of one link, and the count of what was ever addressed to its server.
type outbox struct {
	wake chan struct{} // one slot: something changed since the last take

	mu        sync.Mutex // guards the fields below
	up        bool       // there is a link
	addressed uint64     // hints ever, dropped ones too
	number    uint64     // of hints[0]
	hints     []Hint     // without a hole between them
	bytes     int
	holed     bool // a hint was dropped behind hints: so are the next, until take
}

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 1)} }

// add counts h and queues it. It is false when h was dropped: there is no link, the queue
// is full, or h can never be sent. With discard h is taken, and then lost.
func (o *outbox) add(h Hint, discard bool) bool {
	if len(h.Data) > maxData {
		h.Data = nil // the receiver reads the store
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	number := o.addressed
	o.addressed++
	if !o.up {
		return false
	}
	select {
	case o.wake <- struct{}{}:
	default:
	}
	if discard {
		return true
	}
	cost := h.cost()
	o.holed = o.holed || len(h.Name) > maxName || len(o.hints) >= maxQueued || o.bytes+cost > maxQueuedBytes
	if o.holed {
		return false
	}
	if len(o.hints) == 0 {
		o.number = number
	}
	o.hints = append(o.hints, h)
	o.bytes += cost
	return true
}

// take empties the queue; number is that of hints[0], or with none the one that comes
// next. The queue goes on in spare, which the caller no longer needs.
func (o *outbox) take(spare []Hint) (hints []Hint, number uint64) {
	clear(spare)
	if cap(spare) > keepQueue {
		spare = nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	hints, number = o.hints, o.number
	if len(hints) == 0 {
		number = o.addressed
	}
	o.hints, o.bytes, o.holed = spare[:0], 0, false
	return hints, number
}

// open says that there is a link: from now on hints are queued.
func (o *outbox) open() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.up = true
}

// close says that the link is gone, and returns how many hints waited for it.
func (o *outbox) close() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(o.hints)
	o.up, o.hints, o.bytes, o.holed = false, nil, 0, false
	return n
}
