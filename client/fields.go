package client

import (
	"encoding/json"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// Field is one field of a channel's state.
type Field struct {
	ID    int64           // id of the message that set the value: the version of the field
	Value json.RawMessage // not to be modified
	// Until is the end of the field's lease, or of its grace period after its owners have left, on the
	// store's clock. Zero means that it has no end.
	//
	// The client does not compare it with its own clock: that clock may be wrong, and a renewal may be
	// on its way. The field is there until the broker reports it in Changes.Gone, shortly after Until.
	// Conditions do not wait for that: for IfAbsent, the field is absent from Until on.
	Until time.Time
	Away  bool // all owners of the field have left
}

// Snapshot holds the fields of a channel at one id.
type Snapshot struct {
	Channel string
	ID      int64            // the changes of all messages up to this id are included
	Fields  map[string]Field // by name; owned by the caller
}

// Changes are the changes that one message made to the fields that the client holds, in the order
// of the struct's fields.
type Changes struct {
	Cleared bool                       // all fields were removed: nothing was written for a long time
	Gone    map[string]EndReason       // fields that ended
	Deleted []string                   // fields that an update removed
	Set     map[string]json.RawMessage // new values. Their id is that of the message
	Until   map[string]time.Time       // new ends, see Field.Until. A field in Set and not in Until has none
	Away    map[string]time.Time       // fields whose owners have left, with their Field.Until
	Back    []string                   // fields of which an owner has returned in time
}

// EndReason says why a field has ended.
type EndReason string

// The reasons in Changes.Gone.
const (
	GoneExpired EndReason = "expired" // its lease has ended
	GoneLeft    EndReason = "left"    // its owners have left, and the grace period has ended
)

// Fields returns the fields of a channel that the client is subscribed to with
// [SubscribeOptions.State]. In OnMessage and OnFields it returns the state after the message or the
// pages that the call is about. The result is false before the first pages have arrived.
//
// While pages of a new state arrive, and without a connection, Fields returns the last state.
func (c *Client) Fields(channel string) (Snapshot, bool) {
	if v := c.view(channel); v != nil {
		return v.snapshot()
	}
	return Snapshot{}, false
}

// Field returns one field of a channel, like Fields. The result is false if the field is absent.
func (c *Client) Field(channel, name string) (Field, bool) {
	if v := c.view(channel); v != nil {
		return v.field(name)
	}
	return Field{}, false
}

// view returns the client's copy of the fields of a channel, or nil.
func (c *Client) view(channel string) *view {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sub := c.subs[channel]; sub != nil {
		return sub.view
	}
	return nil
}

// noState stands for the state part of an event that has none.
var noState = new(wire.StateEvent)

// stateOf returns the part of ev that concerns the state. It is never nil.
func stateOf(ev wire.Event) *wire.StateEvent {
	if ev.StateEvent == nil {
		return noState
	}
	return ev.StateEvent
}

// timeOf returns the time of a field's end, in Unix milliseconds; the zero Time for 0.
func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func fieldOf(f state.Shown) Field {
	return Field{ID: f.ID, Value: f.Value, Until: timeOf(f.Until), Away: f.Away}
}

// decodeFields decodes the `fields` of a page or a refusal. An absent field is nil.
func decodeFields(raw json.RawMessage) (map[string]*Field, error) {
	fields := map[string]*Field{}
	if len(raw) == 0 {
		return fields, nil
	}
	shown, err := state.ParseFields(raw)
	if err != nil {
		return nil, err
	}
	for name, f := range shown {
		if fields[name] = nil; f != nil {
			fields[name] = new(fieldOf(*f))
		}
	}
	return fields, nil
}

// changesOf returns the changes of a message, nil if there are none.
func changesOf(ev *wire.StateEvent) *Changes {
	c := &Changes{Cleared: ev.Cleared, Deleted: ev.Del, Set: ev.Set, Back: ev.Back}
	if len(ev.Gone) > 0 {
		c.Gone = make(map[string]EndReason, len(ev.Gone))
		for name, reason := range ev.Gone {
			c.Gone[name] = EndReason(reason)
		}
	}
	c.Until, c.Away = timesOf(ev.Until), timesOf(ev.Away)
	if !c.Cleared && c.Gone == nil && len(c.Deleted) == 0 && len(c.Set) == 0 && c.Until == nil && c.Away == nil && len(c.Back) == 0 {
		return nil
	}
	return c
}

func timesOf(ms map[string]int64) map[string]time.Time {
	if len(ms) == 0 {
		return nil
	}
	times := make(map[string]time.Time, len(ms))
	for name, until := range ms {
		times[name] = timeOf(until)
	}
	return times
}
