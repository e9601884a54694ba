package state

import (
	"maps"
	"slices"

	"switchboard/internal/wire"
)

// Reason is why an update is refused. Stores that run the rules as scripts return it.
type Reason string

// The reasons, in the order of the checks.
const (
	Fenced       Reason = "fenced"      // the connection is too old
	Unmet        Reason = "condition"   // a condition is not met
	Claimed      Reason = "claim"       // another user holds the field
	NotNumber    Reason = "number"      // Add to a value that is not a whole number
	OutOfBounds  Reason = "bounds"      // the result of Add is out of bounds: N
	Absent       Reason = "absent"      // Touch of an absent field
	PartOfPart   Reason = "part"        // the parent has a parent, or the field has parts
	NoParent     Reason = "no_parent"   // the parent Other does not exist
	ParentHeld   Reason = "held_parent" // another user holds the parent Other
	OwnerFull    Reason = "owned"       // the client would own N fields, Max are allowed
	GroupFull    Reason = "group"       // the group Other would have N fields
	ChannelFull  Reason = "fields"      // the channel would have N fields
	ChannelBytes Reason = "bytes"       // the fields would have N bytes
)

// Details describes one refusal. Its Reason tells which fields it has.
type Details struct {
	Field  string            // field of the refused operation, or the first condition that is not met
	Other  string            // parent, or group
	N, Max int64             // see Reason
	Fields map[string]*Field // current values
}

// dropValues drops the values of the fields that do not fit PageBytes, in the order of names. They
// would not be shown.
func dropValues(fields map[string]*Field) {
	size := 0
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		f := fields[name]
		if f == nil {
			continue
		}
		if size+len(f.Value) > PageBytes {
			f.Value = nil
		}
		size += len(f.Value)
	}
}

// Refuse returns the Refusal for a reason. Its message begins with the name of the field, if there
// is one. Refuse changes the fields in d: above PageBytes they lose their values.
func Refuse(why Reason, d Details) *Refusal {
	r := &Refusal{Field: d.Field}
	if len(d.Fields) > 0 {
		r.Fields = d.Fields
		dropValues(r.Fields)
	}
	field := func(code wire.ErrorCode, format string, args ...any) {
		r.Err = wire.Errorf(code, "field %s: "+format, append([]any{d.Field}, args...)...)
	}
	switch why {
	case Fenced:
		// Not a Conflict: no field forbids the update. A client whose server was taken for dead succeeds
		// as soon as the server has bound it again.
		r.Err = wire.Errorf(wire.Unavailable, "the client is connected elsewhere, or its connection has ended; try again later")
	case Unmet:
		field(wire.Conflict, "it does not meet the condition")
	case Claimed:
		field(wire.Conflict, "another user holds it")
	case NotNumber:
		field(wire.BadRequest, "its value is not a whole number")
	case OutOfBounds:
		field(wire.OutOfRange, "the result %d is out of bounds", d.N)
	case Absent:
		field(wire.NotFound, "there is no such field")
	case PartOfPart:
		field(wire.BadRequest, "a field that is part of another one cannot have parts")
	case NoParent:
		field(wire.NotFound, "its parent %s does not exist", d.Other)
	case ParentHeld:
		field(wire.Forbidden, "another user holds its parent %s", d.Other)
	case OwnerFull:
		field(wire.Full, "the client would own %d fields, at most %d are allowed", d.N, d.Max)
		r.Max = int(d.Max)
	case GroupFull:
		r.Err = wire.Errorf(wire.Full, "group %s would have %d fields, at most %d are allowed", d.Other, d.N, d.Max)
		r.Group, r.Max = d.Other, int(d.Max)
	case ChannelFull:
		field(wire.Full, "the channel would have %d fields, at most %d are allowed", d.N, d.Max)
		r.Max = int(d.Max)
	case ChannelBytes:
		r.Err = wire.Errorf(wire.TooLarge, "the fields of the channel would have %d bytes, at most %d are allowed", d.N, d.Max)
	default:
		r.Err = wire.Errorf(wire.Unavailable, "the update was refused: %s", why)
	}
	return r
}
