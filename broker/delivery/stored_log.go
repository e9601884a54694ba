package delivery

import (
	"slices"
	"sync"
	"time"

	"switchboard/broker/peer"
)

const (
	// keepNotes is how long it is remembered, at least, that a message was stored: longer than a
	// failover takes to be noticed.
	keepNotes = time.Minute
	// maxNotes bounds the queues that are remembered in that time.
	maxNotes = 1 << 17
	// maxUnsure bounds the queues to which a call broke off.
	maxUnsure = 1 << 12
	// maxBefore bounds the histories of one queue.
	maxBefore = 8
)

// place is one queue: a channel's or a client's.
type place struct {
	kind peer.Kind
	name string
}

// note is what the store has acknowledged in one queue.
type note struct {
	last   int64
	before []int64 // the last ones of earlier histories of the store that were not asked for yet, the earliest first
	epoch  uint64  // the history that last is of
}

// end begins another history with id.
func (n *note) end(id int64) {
	if len(n.before) == maxBefore {
		n.before = n.before[:maxBefore-1] // a store that changes that often cannot be asked in between
	}
	n.before = append(slices.Clip(n.before), n.last) // copies of the note share what was there
	n.last = id
}

// witness remembers which messages the store has acknowledged. Redis may lose those in a failover, and
// nobody but the server that was told of them can know.
type witness struct {
	epoch func() uint64 // changes with the store's history, before anything is written to the new one

	lost func() // a loss shows by itself

	mu            sync.Mutex // guards the fields below
	recent, older map[place]note
	turned        time.Time // when recent began
	unsure        map[place]struct{}
}

// newWitness returns one that has seen nothing. A nil epoch means always the same.
func newWitness(epoch func() uint64, lost func()) *witness {
	if epoch == nil {
		epoch = func() uint64 { return 0 }
	}
	return &witness{epoch: epoch, lost: lost, recent: map[place]note{}, turned: time.Now(), unsure: map[place]struct{}{}}
}

// stored notes message id, and that the store says prev is the one before it; prev is below 0 when
// it does not say.
func (w *witness) stored(p place, id, prev int64) {
	epoch := w.epoch()
	w.mu.Lock()
	defer w.mu.Unlock()
	n, known := w.recent[p]
	if !known {
		n, known = w.older[p]
	}
	switch {
	case !known:
		if len(w.recent) >= maxNotes {
			return
		}
		n = note{last: id}
	case n.epoch != epoch:
		n.end(id)
	case prev >= 0 && prev < n.last && id > n.last:
		// In front of id stands an older one than was acknowledged already.
		n.end(id)
		w.lost()
	default: // answers overtake each other
		n.last = max(n.last, id)
	}
	n.epoch = epoch
	w.recent[p] = n
}

// doubt notes that a call broke off: it may have stored a message, and told nobody.
func (w *witness) doubt(p place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.unsure) < maxUnsure {
		w.unsure[p] = struct{}{}
	}
}

// takeUnsure gives the doubtful queues and forgets them.
func (w *witness) takeUnsure() (channels, clients []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range w.unsure {
		if p.kind == peer.Channel {
			channels = append(channels, p.name)
		} else {
			clients = append(clients, p.name)
		}
	}
	clear(w.unsure)
	return channels, clients
}

// all is a copy of what is remembered.
func (w *witness) all() map[place]note {
	w.mu.Lock()
	defer w.mu.Unlock()
	notes := make(map[place]note, len(w.older)+len(w.recent))
	for p, n := range w.older {
		notes[p] = n
	}
	for p, n := range w.recent {
		notes[p] = n
	}
	return notes
}

// confirmed forgets what was asked of earlier histories. What came meanwhile stays.
func (w *witness) confirmed(p place, before []int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, notes := range []map[place]note{w.recent, w.older} {
		n, known := notes[p]
		if known && len(before) > 0 && len(n.before) >= len(before) && slices.Equal(n.before[:len(before)], before) {
			if n.before = n.before[len(before):]; len(n.before) == 0 {
				n.before = nil
			}
			notes[p] = n
		}
	}
}

// turn forgets notes that are old enough. It is not called while the store is doubted.
func (w *witness) turn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.turned) >= keepNotes {
		w.older, w.recent, w.turned = w.recent, make(map[place]note), time.Now()
	}
}
