package events

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	// trackIdle is how long a channel without fields stays tracked after its last event and the last
	// call of TrackFields.
	trackIdle = 90 * time.Minute
	// trackLookBack is the age up to which the log of a newly tracked channel is checked. It is longer
	// than the difference of the clocks in a Redis Cluster. It is shorter than trackIdle, so a channel
	// that is tracked again has no events twice.
	trackLookBack = time.Hour
	// TrackFor is how long a call of TrackFields is valid. It leaves a margin to trackIdle.
	TrackFor = 30 * time.Minute
	// recheckDelay is the least time between two checks of a channel, so that a round ends although a
	// clock of a Redis Cluster is late.
	recheckDelay = 100 * time.Millisecond
)

// TrackFields makes the dispatchers report the fields of the channels that end from now on. Call it
// before an update of a channel's state, unless a call in the last [TrackFor] had no error: a
// process that is killed after the update has then lost nothing. A channel stays tracked while it
// has fields. The errors are in the order of the channels; an error is ErrFull if too many channels
// are tracked.
func (r *Recorder) TrackFields(ctx context.Context, channels ...string) []error {
	if !r.wants(endKinds...) {
		return make([]error, len(channels))
	}
	checks := make([]FieldsCheck, len(channels))
	for i, channel := range channels {
		checks[i] = checkFieldsAt(channel, 0)
	}
	return r.store.ScheduleFields(ctx, true, checks...)
}

// FieldsDue is the earliest time at which a field of a channel ends, Unix ms. 1 means that fields
// have ended already.
type FieldsDue struct {
	Channel string
	At      int64
}

// FieldsDue schedules checks of tracked channels, and ignores other ones. Call it after an update
// of a channel's state. Without the call, fields that have ended are reported later, by a
// SweepRound.
func (r *Recorder) FieldsDue(ctx context.Context, dues ...FieldsDue) []error {
	if !r.wants(endKinds...) {
		return make([]error, len(dues))
	}
	checks := make([]FieldsCheck, len(dues))
	for i, due := range dues {
		checks[i] = checkFieldsAt(due.Channel, due.At)
	}
	return r.store.ScheduleFields(ctx, false, checks...)
}

// checkFieldsAt returns a check in the shard of the channel's other events, so that all events of a
// channel are in order.
func checkFieldsAt(channel string, at int64) FieldsCheck {
	return FieldsCheck{Check{shardOf(channelPrefix, channel), fieldsPrefix + channel}, at}
}

// FieldsCheck is a check of the fields of a channel.
type FieldsCheck struct {
	Check
	At int64 // time of the check, Unix ms; 0 for none
}

// Tracked is what a store holds of a channel whose fields are reported.
type Tracked struct {
	Reported int64 // id in the channel's log up to which all fields that ended are reported
	Renewed  int64 // time of the last TrackFields or event, Unix ms
	Empty    bool  // the channel had no fields at the last check
}

// String returns the record in Redis.
func (t Tracked) String() string {
	empty := 0
	if t.Empty {
		empty = 1
	}
	return fmt.Sprintf("%d %d %d", t.Reported, t.Renewed, empty)
}

// parseTracked parses the record in Redis.
func parseTracked(record string) (t Tracked, err error) {
	var empty int
	_, err = fmt.Sscanf(record, "%d %d %d", &t.Reported, &t.Renewed, &empty)
	t.Empty = empty == 1
	return t, err
}

// TrackedChannel is a tracked channel.
type TrackedChannel struct {
	Entry string // f:<channel>
	Tracked
}

// channel returns the name of the channel.
func (t TrackedChannel) channel() string { return strings.TrimPrefix(t.Entry, fieldsPrefix) }

// FieldsResult is the result of checking the fields of a channel.
type FieldsResult struct {
	Claim
	Before   int64 // the position up to which fields were reported at the time of the claim
	Reported int64 // the position up to which they are reported now
	Empty    bool  // the channel has no fields
	// Next is the time of the next check, Unix ms. 0 means none. The store ends the tracking of a
	// channel that is Empty and without a next check, after trackIdle.
	Next int64
	// Untrack ends the tracking at once.
	Untrack bool
	Events  []NewEvent
}

// NewEvent is an event to append to an outbox.
type NewEvent struct {
	ID   string
	Body []byte // as [body] returns it
}
