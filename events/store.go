package events

import (
	"context"
	"errors"
	"time"
)

var (
	// ErrFull is returned when a due list, or the deadline records of a shard, have no room.
	ErrFull = errors.New("events: full")
	// ErrFenced is returned to a caller whose lease has expired or was taken over.
	ErrFenced = errors.New("events: the lease is no longer held")
)

// A Check is a user, a channel, or the fields of a channel to check.
type Check struct {
	Shard int    // of the user or channel, as shardOf returns it
	Entry string // u:<user>, c:<channel> or f:<channel>
}

// A Claim is an entry of the due list that no other process checks until the claim expires.
type Claim struct {
	Entry  string
	Token  string // fencing token for Settle
	Record []byte // of a message with a deadline or a tracked channel; nil if the store has none
}

// A CheckResult is the result of checking a claimed entry.
type CheckResult struct {
	Claim
	// Present is the current state of a user or channel.
	Present bool
	// Event is the event to append, as [body] returns it; nil means none. The event of a user or
	// channel is appended only if Present differs from the reported state.
	Event []byte
	// ID is the id of the event. If it is empty, the store chooses one.
	ID string
}

// Settled is the result of settling a claim.
type Settled struct {
	Valid        bool // false if the claim was no longer the caller's; then nothing was changed
	Created      bool // an event was appended
	DeadLettered int  // older events that were moved to the dead letters to make room
}

// A Batch is the head of a shard's outbox, leased for one delivery.
type Batch struct {
	Shard    int
	Fence    int64 // fencing token of the lease
	Attempts int   // failed attempts since the last successful one
	Events   []QueuedEvent
	// Answer is the endpoint's answer to the last attempt. The caller sets it before Sent, Failed or
	// Refused, which store it for operators. Zero changes nothing.
	Answer Answer
}

// A QueuedEvent is an event in an outbox.
type QueuedEvent struct {
	// Seq is the sequence number. It increases along the outbox. It is at least 4096 times the number
	// of milliseconds since 2020-01-01 UTC on the store's clock, so it also tells the event's age.
	Seq   int64
	Event []byte
}

// Reason is why an event was moved to the dead letters.
type Reason string

const (
	Expired Reason = "expired" // it could not be sent for MaxAge
	Refused Reason = "refused" // the endpoint refused its content
	Gone    Reason = "gone"    // the endpoint answered 410
	Full    Reason = "full"    // the outbox had no room
)

// A DeadLetter is an event that is no longer sent.
type DeadLetter struct {
	Reason Reason
	At     time.Time // time of the move to the dead letters, on the store's clock
	Event  []byte
}

// Store holds the due lists, the reported states, the outboxes and the dead letters. [Redis] and
// [Memory] implement it. The tests in conformance_test.go run over both. All methods are safe for
// concurrent use.
type Store interface {
	// Schedule schedules checks: after grace if the entry is reported present, else now. It replaces
	// an earlier schedule or claim of the same entry. The errors are in the order of the checks; an
	// error is ErrFull if the due list has no room.
	Schedule(ctx context.Context, grace time.Duration, checks ...Check) []error
	// SetDeadline stores the record of a message and schedules a check of entry. The check is due
	// after the duration in. SetDeadline does nothing if the entry has a deadline already. The error
	// is ErrFull if there is no room.
	SetDeadline(ctx context.Context, shard int, entry string, record []byte, in time.Duration) error
	// Claim claims up to n due entries for the time ttl and returns them.
	Claim(ctx context.Context, shard, n int, ttl time.Duration) ([]Claim, error)
	// Settle ends a claim: it removes the entry from the due list, stores the reported state, and
	// appends the event, if there is a new one, to the outbox.
	Settle(ctx context.Context, shard int, r CheckResult) (Settled, error)
	// ReportedPresent returns a page of about n entries that are reported present. The first cursor
	// is ""; next is "" after the last page. An entry may be in several pages. An entry that is
	// present during the whole walk is in at least one.
	ReportedPresent(ctx context.Context, shard int, cursor string, n int) (entries []string, next string, err error)

	// ScheduleFields schedules checks of tracked channels. A check that is scheduled for an earlier
	// time stays. With track, the channels become tracked, if they are not; else channels that are
	// not tracked are ignored. Fields that end from then on are reported. The errors are in the order
	// of the checks; an error is ErrFull if there is no room for another tracked channel.
	ScheduleFields(ctx context.Context, track bool, checks ...FieldsCheck) []error
	// SettleFields ends a claim of a tracked channel: it appends the events to the outbox and
	// schedules the next check. It changes nothing if the reported position is no longer r.Before.
	SettleFields(ctx context.Context, shard int, r FieldsResult) (Settled, error)
	// TrackedChannels returns a page of about n tracked channels, like ReportedPresent.
	TrackedChannels(ctx context.Context, shard int, cursor string, n int) (channels []TrackedChannel, next string, err error)

	// Take leases the outbox and returns its head: at most n events and maxBatchBytes. The batch has
	// no events if the outbox is empty, if another process holds the lease, or if the next
	// attempt is not due.
	Take(ctx context.Context, shard, n int, lease time.Duration) (Batch, error)
	// Sent removes the events up to the sequence number upTo from the outbox. It renews the lease for
	// the time renew, or ends it if renew is zero. The error is ErrFenced if the caller no longer
	// holds the lease.
	Sent(ctx context.Context, b Batch, upTo int64, renew time.Duration) error
	// Failed counts a failed attempt, ends the lease and sets the time of the next attempt. If events
	// up to upTo are older than maxAge, it moves them to the dead letters. It returns their number.
	// The error is ErrFenced as for Sent.
	Failed(ctx context.Context, b Batch, upTo int64, retryIn, maxAge time.Duration) (expired int, err error)
	// Refused moves the events up to upTo to the dead letters. Otherwise it is like Sent.
	Refused(ctx context.Context, b Batch, upTo int64, why Reason, renew time.Duration) error

	// DeadLetters skips the oldest dead letters, as many as skip says, and returns the next n, oldest
	// first.
	DeadLetters(ctx context.Context, shard, skip, n int) ([]DeadLetter, error)
	// Requeue moves up to n dead letters to the end of the outbox while there is room, oldest first,
	// and returns their number.
	Requeue(ctx context.Context, shard, n int) (int, error)
	// Letter removes the dead letter of the event with an id, and reports whether there was one. With
	// retry, it appends the event to the outbox; the error is ErrFull if there is no room.
	Letter(ctx context.Context, shard int, id string, retry bool) (found bool, err error)
	// Backlog counts the events of the outbox and the dead letters, and describes the last attempt.
	Backlog(ctx context.Context, shard int) (Backlog, error)
}
