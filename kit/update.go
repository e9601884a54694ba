package kit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"switchboard/broker/extension"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// StateReader reads the states of channels. *extension.Host and the queues implement it.
type StateReader interface {
	// ReadStates returns an outcome for each read, in one round trip.
	ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage]
}

// Store keeps the states of the channels of documents.
type Store interface {
	StateReader
	// Change changes the state of a channel. If the update is refused, the error is a
	// *state.Refusal. If durable is set and no replica has the change in time, the error is
	// queue.ErrNotReplicated, and the result is valid. An update without a writer is the backend's.
	Change(ctx context.Context, channel string, u *state.Update, durable bool) (Changed, error)
}

// Changed is the result of a change.
type Changed struct {
	ID    int64
	Clock int64 // the store's clock, from which the leases of the change count, Unix ms
}

// HostStore returns the store of the broker.
func HostStore(h *extension.Host) Store { return hostStore{h} }

type hostStore struct{ *extension.Host }

// Change implements Store.
func (s hostStore) Change(ctx context.Context, channel string, u *state.Update, durable bool) (Changed, error) {
	u.Writer = cmp.Or(u.Writer, state.BackendHolder)
	done, err := s.Host.Change(ctx, channel, u, extension.ChangeOptions{Durable: durable})
	return Changed{done.ID, done.Clock}, err
}

// Record is the value of a field that has JSON, and the id of the field. The id is 0 if the field
// is absent.
type Record[T any] struct {
	Value T
	ID    int64
}

// Exists reports whether there is the field.
func (r *Record[T]) Exists() bool { return r.ID != 0 }

// Read reads a field.
func (r *Record[T]) Read(f *state.Field) error {
	r.ID = f.ID
	return json.Unmarshal(f.Value, &r.Value)
}

// CheckFormat returns an error if the format of a record is newer than the one that this program
// knows: a change by an older program would lose what it does not know.
func CheckFormat(format, known int) error {
	if format > known {
		return fmt.Errorf("its record has version %d, this program knows up to %d", format, known)
	}
	return nil
}

// Same is the condition that a field has an id. 0 means that it is absent.
func Same(field string, id int64) state.Condition {
	if id == 0 {
		return state.Condition{Field: field, Kind: state.IsAbsent}
	}
	return state.Condition{Field: field, Kind: state.IsID, ID: id}
}

// Set is the operation that sets a field to the JSON of a value.
func Set(field string, value any) state.Op {
	return state.Op{Field: field, Kind: state.Set, Value: JSON(value)}
}

// Delete is the operation that deletes a field.
func Delete(field string) state.Op { return state.Op{Field: field, Kind: state.Delete} }

// JSON returns the JSON of a value that has one.
func JSON(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // the raw JSON in values is valid
	}
	return text
}

// IsRefused reports whether the store has refused an update with one of the codes, or with any
// without codes.
func IsRefused(err error, codes ...wire.ErrorCode) bool {
	e, ok := errors.AsType[*state.Refusal](err)
	return ok && (len(codes) == 0 || slices.Contains(codes, e.Err.Code))
}

// HasCode reports whether err has one of the codes.
func HasCode(err error, codes ...wire.ErrorCode) bool {
	e, ok := errors.AsType[*wire.Error](err)
	return ok && slices.Contains(codes, e.Code)
}

// ReadState reads a part of the state of one channel.
func ReadState(ctx context.Context, r StateReader, read queue.StateRead) (*queue.StatePage, error) {
	o := r.ReadStates(ctx, []queue.StateRead{read})[0]
	if o.Err != nil {
		return nil, fmt.Errorf("read %s: %w", read.Channel, o.Err)
	}
	return &o.Value, nil
}

// ReadsOf returns a read of several documents. prefix is that of their channels.
func ReadsOf(prefix string, ids []string, read queue.StateRead) []queue.StateRead {
	reads := make([]queue.StateRead, len(ids))
	for i, id := range ids {
		reads[i], reads[i].Channel = read, prefix+id
	}
	return reads
}

// ReadEach reads several documents in one round trip, and parses what was read of each.
func ReadEach[D any](
	ctx context.Context, r StateReader, prefix string, ids []string, read queue.StateRead, parse func(id string, page *queue.StatePage) (D, error),
) ([]D, error) {
	list, reads := make([]D, len(ids)), ReadsOf(prefix, ids, read)
	for i, o := range r.ReadStates(ctx, reads) {
		err := o.Err
		if err == nil {
			list[i], err = parse(ids[i], &o.Value)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", reads[i].Channel, err)
		}
	}
	return list, nil
}

const (
	// MaxAttempts is how often an operation reads and decides while others change what it has read.
	MaxAttempts = 8
	// longestPause is the longest time between two attempts.
	longestPause = 50 * time.Millisecond
)

var (
	// ErrChanged means that what an operation has read has changed, so that it must read again.
	ErrChanged = errors.New("what was read has changed")
	// ErrContended means that it has changed at every attempt of Retry.
	ErrContended = errors.New("all attempts have failed")
)

// IfChanged returns ErrChanged if err is the refusal of a condition, and otherwise err.
func IfChanged(err error) error {
	if IsRefused(err, wire.Conflict) {
		return ErrChanged
	}
	return err
}

// Retry calls try until it returns another error than ErrChanged, at most MaxAttempts times. In
// between it waits, at first about a millisecond and then up to 50 ms: operations that change the
// same thing would otherwise refuse each other again and again. After the last attempt the error is
// ErrContended with the code unavailable, and if ctx ends that of ctx. what names the thing in the
// error.
func Retry[T any](ctx context.Context, what string, try func() (T, error)) (T, error) {
	for i := range MaxAttempts {
		result, err := try()
		if !errors.Is(err, ErrChanged) {
			return result, err
		}
		if i == MaxAttempts-1 {
			break
		}
		most := min(time.Millisecond<<i, longestPause)
		select {
		case <-time.After(most/2 + rand.N(most)/2 + 1):
		case <-ctx.Done():
			return result, ctx.Err()
		}
	}
	var none T
	refusal := wire.Errorf(wire.Unavailable, "%s: others change it all the time; try again", what)
	return none, fmt.Errorf("%w: %w", ErrContended, refusal)
}

// Again is Retry for an operation without a result.
func Again(ctx context.Context, what string, try func() error) error {
	_, err := Retry(ctx, what, func() (struct{}, error) { return struct{}{}, try() })
	return err
}
