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
	keepTime = time.Minute
	// maxNotes bounds the queues that are remembered in that time.
	maxQueues = 1 << 17
	// maxUnsure bounds the queues to which a call broke off.
	maxUncertain = 1 << 12
	// maxBefore bounds the histories of one queue.
	maxHistories = 8
)

// place is one queue: a channel's or a client's.
type queueKey struct {
	kind peer.Kind
	name string
}

// note is what the store has acknowledged in one queue.
type storedIDs struct {
	last    int64
	earlier []int64 // the last ones of earlier histories of the store that were not asked for yet, the earliest first
	epoch   uint64  // the history that last is of
}

// end begins another history with id.
func (n *storedIDs) startHistory(id int64) {
	if len(n.earlier) == maxHistories {
		n.earlier = n.earlier[:maxHistories-1] // a store that changes that often cannot be asked in between
	}
	n.earlier = append(slices.Clip(n.earlier), n.last) // copies of the note share what was there
	n.last = id
}

// witness remembers which messages the store has acknowledged. Redis may lose those in a failover, and
// nobody but the server that was told of them can know.
type storedLog struct {
	epoch func() uint64 // changes with the store's history, before anything is written to the new one

	onLoss func() // a loss shows by itself

	mu            sync.Mutex // guards the fields below
	recent, older map[queueKey]storedIDs
	rotatedAt     time.Time // when recent began
	uncertain     map[queueKey]struct{}
}

// newWitness returns one that has seen nothing. A nil epoch means always the same.
func newStoredLog(epoch func() uint64, lost func()) *storedLog {
	if epoch == nil {
		epoch = func() uint64 { return 0 }
	}
	return &storedLog{epoch: epoch, onLoss: lost, recent: map[queueKey]storedIDs{}, rotatedAt: time.Now(), uncertain: map[queueKey]struct{}{}}
}

// stored notes message id, and that the store says prev is the one before it; prev is below 0 when
// it does not say.
func (w *storedLog) add(p queueKey, id, prev int64) {
	epoch := w.epoch()
	w.mu.Lock()
	defer w.mu.Unlock()
	n, known := w.recent[p]
	if !known {
		n, known = w.older[p]
	}
	switch {
	case !known:
		if len(w.recent) >= maxQueues {
			return
		}
		n = storedIDs{last: id}
	case n.epoch != epoch:
		n.startHistory(id)
	case prev >= 0 && prev < n.last && id > n.last:
		// In front of id stands an older one than was acknowledged already.
		n.startHistory(id)
		w.onLoss()
	default: // answers overtake each other
		n.last = max(n.last, id)
	}
	n.epoch = epoch
	w.recent[p] = n
}

// doubt notes that a call broke off: it may have stored a message, and told nobody.
func (w *storedLog) addUncertain(p queueKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.uncertain) < maxUncertain {
		w.uncertain[p] = struct{}{}
	}
}

// takeUnsure gives the doubtful queues and forgets them.
func (w *storedLog) takeUncertain() (channels, clients []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range w.uncertain {
		if p.kind == peer.Channel {
			channels = append(channels, p.name)
		} else {
			clients = append(clients, p.name)
		}
	}
	clear(w.uncertain)
	return channels, clients
}

// all is a copy of what is remembered.
func (w *storedLog) snapshot() map[queueKey]storedIDs {
	w.mu.Lock()
	defer w.mu.Unlock()
	notes := make(map[queueKey]storedIDs, len(w.older)+len(w.recent))
	for p, n := range w.older {
		notes[p] = n
	}
	for p, n := range w.recent {
		notes[p] = n
	}
	return notes
}

// confirmed forgets what was asked of earlier histories. What came meanwhile stays.
func (w *storedLog) removeConfirmed(p queueKey, before []int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, notes := range []map[queueKey]storedIDs{w.recent, w.older} {
		n, known := notes[p]
		if known && len(before) > 0 && len(n.earlier) >= len(before) && slices.Equal(n.earlier[:len(before)], before) {
			if n.earlier = n.earlier[len(before):]; len(n.earlier) == 0 {
				n.earlier = nil
			}
			notes[p] = n
		}
	}
}

// turn forgets notes that are old enough. It is not called while the store is doubted.
func (w *storedLog) rotate() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.rotatedAt) >= keepTime {
		w.older, w.recent, w.rotatedAt = w.recent, make(map[queueKey]storedIDs), time.Now()
	}
}
