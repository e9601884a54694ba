package kit

import (
	"errors"
	"net/http"
	"strconv"

	"switchboard/internal/wire"
)

// Match is a condition on a document before a change. The zero value is met always; else one field
// is set.
type Match struct {
	Version int64 // the document has this version
	Exists  bool  // there is a document
	Absent  bool  // there is no document
}

// Met reports whether a document with a version meets the condition. Version 0 means that there is
// no document.
func (m Match) Met(version int64) bool {
	switch {
	case m.Version != 0:
		return version == m.Version
	case m.Exists:
		return version != 0
	case m.Absent:
		return version == 0
	}
	return true
}

// Patch sets a member of a document to a value, unless that is nil: the member stays.
func Patch[T any](member, value *T) {
	if value != nil {
		*member = *value
	}
}

// Removed is the answer to the DELETE of a document that leaves nothing.
type Removed struct {
	ID      string `json:"id,omitempty"` // of a room
	Deleted bool   `json:"deleted"`      // there was one
}

// Removed returns the answer to a DELETE whose error is err. A document that is not there is
// deleted already, unless the condition asks for one: so a repeated call has the status of the
// first.
func (m Match) Removed(err error) (Removed, error) {
	switch e, refused := errors.AsType[*wire.Error](err); {
	case err == nil:
		return Removed{Deleted: true}, nil
	case !refused || e.Code != wire.NotFound:
		return Removed{}, err
	case m.Version != 0 || m.Exists:
		return Removed{}, wire.Errorf(wire.Conflict, "%s", e.Message)
	}
	return Removed{}, nil
}

// ParseMatch returns the condition of a request, or a bad_request error. If-Match is a version, in
// quotes or without them, or *: there is a document (RFC 9110 section 13.1.1). If-None-Match is *:
// there is none (section 13.1.2). Lists of versions and weak entity tags are refused.
func ParseMatch(h http.Header) (m Match, err error) {
	want, none := h.Values("If-Match"), h.Values("If-None-Match")
	switch {
	case len(want)+len(none) == 0:
		return Match{}, nil
	case len(want)+len(none) > 1:
		return Match{}, wire.Errorf(wire.BadRequest, "If-Match, If-None-Match: one condition is allowed")
	case len(none) == 1 && none[0] == "*":
		return Match{Absent: true}, nil
	case len(none) == 1:
		return Match{}, wire.Errorf(wire.BadRequest, "If-None-Match: %.40q is not *", none[0])
	case want[0] == "*":
		return Match{Exists: true}, nil
	}
	digits := want[0]
	if n := len(digits); n > 2 && digits[0] == '"' && digits[n-1] == '"' {
		digits = digits[1 : n-1]
	}
	if m.Version, err = strconv.ParseInt(digits, 10, 64); err != nil || m.Version <= 0 {
		return Match{}, wire.Errorf(wire.BadRequest, "If-Match: %.40q is neither a version nor *", want[0])
	}
	return m, nil
}

// MatchExisting is ParseMatch for calls that change only what exists, so that the error of
// If-None-Match is bad_request.
func MatchExisting(h http.Header) (Match, error) {
	m, err := ParseMatch(h)
	if err == nil && m.Absent {
		err = wire.Errorf(wire.BadRequest, "If-None-Match: this call changes only what exists")
	}
	return m, err
}

// IfMatch returns the version that If-Match asks for, see [MatchExisting]. 0 means any: there is no
// If-Match, or it is *, which is met wherever the call is possible.
func IfMatch(h http.Header) (version int64, err error) {
	m, err := MatchExisting(h)
	return m.Version, err
}
