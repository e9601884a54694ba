package queue

import (
	"encoding/json"

	"switchboard/internal/state"
)

// StepKind is what a StateStep does.
type StepKind uint8

// The kinds of steps. All of them first remove what is due.
const (
	// Sweep does nothing else. It also forgets the generations of clients that ended long ago.
	Sweep StepKind = iota
	// OwnerEnded records that the connection of a client has ended, see [state.State.End]. It is
	// the only step that does something in a channel without a state: an update of the connection
	// whose outcome is not known may still come.
	OwnerEnded
	// ServerEnded records that all connections of Conn.Server have ended, see
	// [state.State.EndServer].
	ServerEnded
	// OwnerBack records that a client is connected, with a new generation or on a new server, see
	// [state.State.Back]. If a higher generation is recorded, or this one has ended, the error is
	// ErrStale.
	OwnerBack
	// OwnerUnsubscribed ends the ownership of all fields of a connection, see
	// [state.State.Disown].
	OwnerUnsubscribed
)

// StateStep is a change of a channel's state that no push makes.
type StateStep struct {
	Channel string
	Kind    StepKind
	Conn    state.Connection // of ServerEnded only the Server; of Sweep nothing
}

// StateRead is one read for ReadStates.
type StateRead struct {
	Channel string
	// Prefix selects the fields that begin with it.
	Prefix string
	// Cursor is the Next of the previous page, or "". The fields after it are read.
	Cursor string
	Limit  int // most fields. Zero means all
	Bytes  int // most bytes of names and values, but at least one field. Zero means all
	// Fields selects these fields, instead of the four fields above.
	Fields []string
	// Brief reads the values of the fields and when they end, but not their ids, holders, parents and
	// owners. It has no effect on a read with Count.
	Brief bool
	// Count counts the live fields of groups. Only Fields are read then, none if there are no Fields.
	Count []state.FieldGroup
}

// StatePage is a part of a channel's state.
type StatePage struct {
	ID     int64        // the last id of the channel: the state includes all entries up to it
	Clock  int64        // the store's clock, Unix ms
	Fields []NamedField // live fields, ordered by name
	Next   string       // the last name of a page that is not the last one, else ""
	Due    int64        // when the next field of the channel ends, or the whole state, Unix ms; 0 for never
	// KeepUntil is when all fields end unless the state is written, Unix ms. -1 means never, and 0
	// that there are no fields.
	KeepUntil int64

	// Of a read with Count: the numbers of fields, when the next field ends that is not due, Unix ms,
	// 0 for never, and how many fields are due that no change has removed yet.
	Counts  []int
	Ends    int64
	Expired int
}

// Show returns the fields that the filter shows, as one JSON object, and the cursor of the next
// page. The cursor is before Next if the JSON would be longer than state.PageBytes.
func (p *StatePage) Show(filter state.Filter) (fields json.RawMessage, next string) {
	w := state.FieldsWriter{Filter: filter}
	for i, f := range p.Fields {
		shown := f.Show()
		if !w.Add(f.Name, &shown) { // as JSON the fields are longer than the bytes that were read
			return w.JSON(), p.Fields[i-1].Name
		}
	}
	return w.JSON(), p.Next
}

// NamedField is a field and its name.
type NamedField struct {
	Name string
	*state.Field
}
