package notes

import (
	"context"
	"fmt"
	"sync"
	"time"

	"switchboard/internal/note"
)

const (
	// maxPositions bounds the servers whose position a Reader remembers.
	maxPositions = 1 << 12
	// positionKeep is how long a position is remembered. It is longer than notes are kept.
	positionKeep = 2 * time.Minute
)

// Notes are notes of one server, as a Store returns them.
type Notes struct {
	Entries []Entry
	// Complete is whether all notes above the given number are there: all masters have answered, the
	// store has removed none, and each master has one of the keys.
	Complete bool
}

// Store reads notes. [Redis] implements it.
type Store interface {
	// Read returns the notes above a number. listed is what Journal.Describe has returned for the
	// server. After an error the Notes are those of the masters that have answered.
	Read(ctx context.Context, listed string, above uint64) (Notes, error)
}

// Reader reads the notes of servers whose hints may be lost. Its methods are safe for concurrent
// use.
type Reader struct {
	store Store
	now   func() time.Time

	mu        sync.Mutex // guards the field below
	positions map[string]position
}

// position is up to where a Reader has read the notes of a server.
type position struct {
	listed string // the position is one in these keys
	number uint64
	at     time.Time
}

// NewReader returns a Reader over a store.
func NewReader(store Store) *Reader {
	return &Reader{store: store, now: time.Now, positions: make(map[string]position)}
}

// Since returns what a server has changed in the store, or is about to change, since a position.
// listed is from the last lease of the server. settled is the highest Writer.Settled that came with
// its hints while none was missing; a former call may have moved the position further. A caller
// that then reads what is named misses nothing of the server up to position, if complete is true.
// It must call Since again as long as the server may change more, after an error, and once after
// the server can change nothing more. After an error, names are those of the masters that answer.
//
// If complete is false, there may be changes that are not named: compare everything, and then call
// Compared.
func (r *Reader) Since(ctx context.Context, server, listed string, settled uint64) (names []note.Name, position uint64, complete bool, err error) {
	position = max(settled, r.position(server, listed))
	if listed == "" {
		return nil, position, false, nil
	}
	notes, err := r.store.Read(ctx, listed, position)
	seen := make(map[note.Name]struct{})
	next := position
	for _, e := range notes.Entries {
		next = max(next, e.Settled)
		for _, n := range e.Names {
			if _, found := seen[n]; !found {
				seen[n] = struct{}{}
				names = append(names, n)
			}
		}
	}
	if err != nil {
		return names, position, false, fmt.Errorf("notes of server %s: %w", server, err)
	}
	if notes.Complete {
		r.setPosition(server, listed, next)
	}
	return names, next, notes.Complete, nil
}

// Compared moves the position that Since has returned with complete false, after the caller has
// compared everything: then it has missed nothing up to there either.
func (r *Reader) Compared(server, listed string, position uint64) {
	r.setPosition(server, listed, position)
}

// Forget drops the position in the notes of a server that has ended.
func (r *Reader) Forget(server string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.positions, server)
}

func (r *Reader) position(server, listed string) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.positions[server]; p.listed == listed {
		return p.number
	}
	return 0
}

func (r *Reader) setPosition(server, listed string, number uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if _, known := r.positions[server]; !known && len(r.positions) >= maxPositions {
		for id, p := range r.positions {
			if now.Sub(p.at) >= positionKeep {
				delete(r.positions, id)
			}
		}
		if len(r.positions) >= maxPositions {
			return // the next call reads more
		}
	}
	if p := r.positions[server]; p.listed != listed || number > p.number {
		r.positions[server] = position{listed, number, now}
	}
}
