package client

import (
	"encoding/json"
	"fmt"

	"switchboard/internal/wire"
)

// Refusal is the error of a [Client.Update] that the fields of the channel forbid. It shows their
// current values, so that a caller can decide again without another request:
//
//	refused, ok := errors.AsType[*client.Refusal](err)
//	if ok && refused.Err.Code == client.Conflict {
//		current := refused.Fields["title"] // nil if the field is absent
//		…
//	}
type Refusal struct {
	// Err is the error without the values. Its code is
	//
	//   - Conflict: a condition is not met, or another user holds a field
	//   - Full: a group, the channel or this client would have too many fields
	//   - OutOfRange: the result of AddWithin is out of bounds
	Err *Error
	// Fields has the current values of the fields that the refusal is about; nil for an absent
	// field. Of Full it has fields of the group. It has only those fields that this client may
	// read. If there are many, some have only an ID.
	Fields map[string]*Field
	// Group and Max are the limit that is reached, with Full. Group is "" for the limit of the
	// channel or of this client.
	Group string
	Max   int
}

// Error implements error.
func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap returns Err.
func (r *Refusal) Unwrap() error { return r.Err }

// DetailedError is the refusal of a [Client.Call] or a [Client.Request] with the values that led to
// it, so that a caller can decide again without another request.
type DetailedError struct {
	Err *Error
	// Data is the JSON of the values. The method, or the backend, defines what it contains.
	Data json.RawMessage
}

// Error implements error.
func (e *DetailedError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *DetailedError) Unwrap() error { return e.Err }

// withDetails returns err as a *DetailedError with the data of the event, if there is any, or as a
// *Refusal with its fields, if it is about fields.
func withDetails(err *Error, ev wire.Event) error {
	if len(ev.Data) > 0 {
		return &DetailedError{err, ev.Data}
	}
	switch err.Code {
	case wire.Conflict, wire.Full, wire.OutOfRange:
	default:
		return err
	}
	r, part := &Refusal{Err: err}, stateOf(ev)
	r.Group = part.Group
	if part.Max != nil {
		r.Max = *part.Max
	}
	fields, malformed := decodeFields(part.Fields)
	if malformed != nil {
		return fmt.Errorf("%w (%w)", r, malformed)
	}
	r.Fields = fields
	return r
}
