package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// MaxNumber bounds the numbers that [Add] can change: from -MaxNumber to MaxNumber.
const MaxNumber = state.MaxNumber

// A Clause is one part of a [Client.Update]: a change of a field ([Set], [Del], [Add], [AddWithin],
// [Touch]), a condition ([IfID], [IfAbsent], [IfExists]), or an option ([Data], [TTL], [Own],
// [Disown], [Of], [Key], [Durable], [NoEcho]). An update changes a field at most once, and may have
// one condition for it.
type Clause func(*wire.Request) error

// Updated is the result of Update.
type Updated struct {
	// ID is the id of the message, and of each field that the update has set: use it in IfID.
	ID int64
	// Numbers are the results of Add and AddWithin, by field.
	Numbers map[string]int64
}

// Update changes fields of a channel, all of them or none, in one message. The broker checks
// the conditions and the limits in the same step.
//
// If a field or a limit forbids the update, the error is a [*Refusal] with the current values. Like
// Publish, Update sends the message once. It sends an update with a [Key] again after a reconnect
// within a minute; the broker applies it once.
//
// If no replica confirms an update with [Durable] in time, the error wraps [ErrNotReplicated], and
// the Updated is valid.
func (c *Client) Update(ctx context.Context, channel string, clauses ...Clause) (Updated, error) {
	if err := wire.CheckName("channel", channel); err != nil {
		return Updated{}, err
	}
	req, err := publishRequest(channel, clauses)
	if err != nil {
		return Updated{}, fmt.Errorf("update %s: %w", channel, err)
	}
	ev, err := c.roundTrip(ctx, req)
	if err != nil && !errors.Is(err, ErrNotReplicated) {
		return Updated{}, fmt.Errorf("update %s: %w", channel, err)
	}
	done := Updated{ID: idOf(ev)}
	if raw := stateOf(ev).Fields; len(raw) > 0 {
		if err := json.Unmarshal(raw, &done.Numbers); err != nil {
			return done, fmt.Errorf("update %s: the update has succeeded, its results are not numbers: %w", channel, err)
		}
	}
	if err != nil {
		return done, fmt.Errorf("update %s: %w", channel, err)
	}
	return done, nil
}

// publishRequest returns the publish that has the clauses.
func publishRequest(channel string, clauses []Clause) (wire.Request, error) {
	req := wire.Request{Type: wire.TypePublish, Channel: channel}
	if len(clauses) > 0 {
		req.Change, req.StateRequest = new(wire.Change), new(wire.StateRequest)
	}
	for _, clause := range clauses {
		if err := clause(&req); err != nil {
			return req, err
		}
	}
	return req, nil
}

// idOf returns the id of an event, 0 for none.
func idOf(ev wire.Event) int64 {
	if ev.ID == nil {
		return 0
	}
	return *ev.ID
}

// Set sets a field to a value, which is encoded as JSON.
func Set(field string, value any) Clause {
	return func(req *wire.Request) error {
		return appendValue(&req.Set, field, value)
	}
}

// Del removes fields. It does nothing to a field that is absent.
func Del(fields ...string) Clause {
	return func(req *wire.Request) error {
		req.Del = append(req.Del, fields...)
		return checkFields(fields)
	}
}

// Add adds to a number. An absent field counts as 0. [Updated] has the result.
func Add(field string, by int64) Clause {
	return func(req *wire.Request) error {
		return appendValue(&req.Add, field, by)
	}
}

// AddWithin is like Add, and the update is refused with OutOfRange if the result is below least or
// above most.
func AddWithin(field string, by, least, most int64) Clause {
	return func(req *wire.Request) error {
		return appendValue(&req.Add, field, map[string]int64{"by": by, "min": least, "max": most})
	}
}

// Touch gives fields a new lease, see [TTL]. Their values and ids stay. The update is refused with
// NotFound if a field is absent.
func Touch(fields ...string) Clause {
	return func(req *wire.Request) error {
		req.Touch = append(req.Touch, fields...)
		return checkFields(fields)
	}
}

// IfID requires that a field has the id: it was not set again since the caller read it. The id 0
// stands for an absent field.
func IfID(field string, id int64) Clause { return condition(field, id) }

// IfAbsent requires that a field is absent. An expired field is absent.
func IfAbsent(field string) Clause { return condition(field, 0) }

// IfExists requires that a field is present.
func IfExists(field string) Clause { return condition(field, true) }

func condition(field string, value any) Clause {
	return func(req *wire.Request) error {
		return appendValue(&req.If, field, value)
	}
}

// Data adds data to the message, which is encoded as JSON. It needs the right to publish.
func Data(value any) Clause {
	return func(req *wire.Request) (err error) {
		req.Data, err = json.Marshal(value)
		return err
	}
}

// TTL gives the fields that are set or touched a lease: they expire after d. Zero means no lease.
// Without TTL, the broker's rule for the field decides.
func TTL(d time.Duration) Clause {
	return func(req *wire.Request) error {
		if d < 0 {
			return wire.Errorf(wire.BadRequest, "ttl: %s is below zero", d)
		}
		req.TTL = new(d.Seconds())
		return nil
	}
}

// Own makes this client an owner of the fields of the update. When the last owner of a field has
// left and does not return within the grace period, the field ends. Own needs a subscription with
// State. After a reconnect, the client owns the fields that still exist.
func Own() Clause {
	return func(req *wire.Request) error { req.Own = new(true); return nil }
}

// Disown ends the ownership of this client: the fields of the update stay when it leaves.
func Disown() Clause {
	return func(req *wire.Request) error { req.Own = new(false); return nil }
}

// Of makes a field that the update sets a part of another one, its parent: it ends when the
// parent ends.
func Of(field, parent string) Clause {
	return func(req *wire.Request) error {
		if req.Of == nil {
			req.Of = make(map[string]string)
		}
		req.Of[field] = parent
		return checkFields([]string{field, parent})
	}
}

// Key makes the update idempotent: for a few minutes, the broker answers other updates of this user
// with the same key in this channel with the result of the first one. A refused update does not
// count.
func Key(key string) Clause {
	return func(req *wire.Request) error { req.Key = key; return nil }
}

// Durable makes the broker answer after a replica of its store has the message, so that a failover
// cannot lose it. The broker's rules for the channel must allow it. Use it together with [Key]:
// after ErrNotReplicated, the same call waits for a replica again and stores nothing twice.
func Durable() Clause {
	return func(req *wire.Request) error { req.Durable = true; return nil }
}

// NoEcho makes this client not receive the data of its message itself: neither live nor when it
// resumes. Other clients of the user do.
func NoEcho() Clause {
	return func(req *wire.Request) error { req.Echo = new(false); return nil }
}

// appendValue appends the JSON of value to list.
func appendValue(list *wire.Values, field string, value any) error {
	if err := state.CheckName(field); err != nil {
		return err
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("field %s: %w", field, err)
	}
	for _, one := range *list {
		if one.Name == field {
			return wire.Errorf(wire.BadRequest, "field %s: it appears twice", field)
		}
	}
	*list = append(*list, wire.Value{Name: field, JSON: raw})
	return nil
}

func checkFields(names []string) error {
	for _, name := range names {
		if err := state.CheckName(name); err != nil {
			return err
		}
	}
	return nil
}
