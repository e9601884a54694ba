package events

import (
	"context"
	"errors"
	"time"
)

var (
	// ErrFull is returned when a due list, or the watched messages of a shard, have no room.
	ErrFull = errors.New("events: full")
	// ErrFenced is returned to whoever holds a lease that another one has taken over, or that is over.
	ErrFenced = errors.New("events: the lease is another's")
)

// Change is a user or channel to look at.
type Change struct {
	Shard int
	Entry string
}

// Claim is an entry that nobody else looks at until the claim is over.
type Claim struct {
	Entry  string
	Token  string // fences Settle
	Record []byte // of a watched message; nil when the store has lost it
}

// Verdict is what was found out about a claim.
type Verdict struct {
	Claim
	Present bool   // of a user or channel; told and truth are compared by it
	Event   []byte // what to append, see body; of a user or channel only if that was not told last. nil for none
	ID      string // of the event; "" has the store give one
}

// Settled is what became of a claim.
type Settled struct {
	Valid   bool // else the claim was not the caller's any more, and nothing happened
	Told    bool // there is an event
	GivenUp int  // older events that it left no room for
}

// Batch is the head of a shard's list.
type Batch struct {
	Shard    int
	Fence    int64
	Attempts int // that failed, since the last that did not
	Events   []Queued
}

// Queued is an event in its list.
type Queued struct {
	Place int64 // grows along the list: (ms since 2020-01-01) × 4096 at least, on the store's clock
	Event []byte
}

// Reason is why an event was given up.
type Reason string

// The reasons there are.
const (
	Expired Reason = "expired" // it could not be sent for MaxAge
	Refused Reason = "refused" // the endpoint refused what is in it
	Gone    Reason = "gone"    // the endpoint answered 410
	Full    Reason = "full"    // the list had no room
)

// DeadLetter is an event that was given up.
type DeadLetter struct {
	Reason Reason
	At     time.Time // when, on the store's clock
	Event  []byte
}

// Store keeps what is to be looked at and what is to be told. Both implementations, [Redis] and [Memory], keep
// this contract; the suite in conformance_test.go runs over both. All calls are safe for concurrent use.
type Store interface {
	// Changed has each entry looked at: now, or after grace when it is told present. An earlier
	// appointment, or claim, is replaced. The errors are in the order of the changes, ErrFull when
	// the list has no room.
	Changed(ctx context.Context, grace time.Duration, changes ...Change) []error
	// Watch keeps record and has entry looked at after that time, unless it is watched already. ErrFull likewise.
	Watch(ctx context.Context, shard int, entry string, record []byte, after time.Duration) error
	// Claim is up to n entries that are due, now claimed for hold.
	Claim(ctx context.Context, shard, n int, hold time.Duration) ([]Claim, error)
	// Settle ends a claim: the entry is off the list, its event, if it is new, on the other one.
	Settle(ctx context.Context, shard int, v Verdict) (Settled, error)
	// Told is some of the entries that are told present, behind cursor ("" to begin); next is "" at the end. One may
	// come twice; one that is there the whole time comes at least once.
	Told(ctx context.Context, shard int, cursor string, n int) (entries []string, next string, err error)

	// Take is the head of the list, at most n events and about maxPageBytes, leased for that long. It has none when there
	// are none, when the lease is another's, or when the next attempt is not due.
	Take(ctx context.Context, shard, n int, lease time.Duration) (Batch, error)
	// Sent takes events up to a place off the list and ends the lease, or renews it when keep is not zero. ErrFenced as
	// described there.
	Sent(ctx context.Context, b Batch, to int64, keep time.Duration) error
	// Failed ends the lease and says when to try again; of those up to a place the ones older than maxAge go to the
	// dead letters. It says how many. ErrFenced likewise.
	Failed(ctx context.Context, b Batch, to int64, again, maxAge time.Duration) (expired int, err error)
	// Refused moves those up to a place to the dead letters, and else is as Sent.
	Refused(ctx context.Context, b Batch, to int64, why Reason, keep time.Duration) error

	// Dead are up to n dead letters, those before from left out, oldest first.
	Dead(ctx context.Context, shard, from, n int) ([]DeadLetter, error)
	// Retry moves up to n dead letters to the end of the list, as far as there is room, and says how many.
	Retry(ctx context.Context, shard, n int) (int, error)
}
