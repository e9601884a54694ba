package kit

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// CheckKey checks the idempotency key of a call that creates something, and the id that the call
// names instead.
func CheckKey(id, key string) error {
	switch {
	case key == "":
		return nil
	case id != "":
		return wire.Errorf(wire.BadRequest, "key: it is for a call without an id")
	}
	return wire.CheckName("key", key)
}

// KeyedID returns the id of what a user creates with an idempotency key: the same id for each
// repeated call. The keys of different users differ. The user of a backend is "".
func KeyedID(user, key string) string {
	sum := sha256.Sum256([]byte(user + "\n" + key))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
}

// CheckID returns an error unless id has 1 to most characters of A-Z a-z 0-9 and punctuation, which
// is a list with spaces.
func CheckID(kind, id string, most int, punctuation string) error {
	if !IsID(id, most, punctuation) {
		return wire.Errorf(wire.BadRequest, "%s: it has 1 to %d characters of A-Z a-z 0-9 %s", kind, most, punctuation)
	}
	return nil
}

// IsID reports whether CheckID accepts an id.
func IsID(id string, most int, punctuation string) bool {
	for i := range len(id) {
		c := id[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && (c == ' ' || strings.IndexByte(punctuation, c) < 0) {
			return false
		}
	}
	return id != "" && len(id) <= most
}

// NamePart returns text as a part of the name of a list or a field. A text whose escaped form has
// more than most bytes is replaced by its hash, which no escaped text can be: "%h" is no escaped
// byte.
func NamePart(text string, most int) string {
	escaped := state.Escape(text)
	if len(escaped) <= most {
		return escaped
	}
	sum := sha256.Sum256([]byte(text))
	return "%h" + hex.EncodeToString(sum[:16])
}

// NewID returns the id of what a user creates: the one that the call names, or one for its key, or
// a new one, which is random.
func NewID(id, user, key, random string) string {
	if key != "" {
		return "key-" + KeyedID(user, key)
	}
	return cmp.Or(id, random)
}

// FormerName returns the value of a member that has a former name. A call names one of them.
func FormerName[T comparable](name string, value T, former string, old T) (T, error) {
	var zero T
	switch {
	case old == zero:
		return value, nil
	case value == zero:
		return old, nil
	}
	return zero, wire.Errorf(wire.BadRequest, "%s: it is the former name of %s, which the call has, too", former, name)
}

// TTL returns the duration of ttl_ms, in milliseconds, or of its former name ttl, in seconds.
func TTL(ms, seconds int64, most time.Duration) (time.Duration, error) {
	switch {
	case ms < 0 || ms > most.Milliseconds():
		return 0, wire.Errorf(wire.BadRequest, "ttl_ms: it must be between 0 and %d", most.Milliseconds())
	case seconds < 0 || seconds > int64(most/time.Second):
		return 0, wire.Errorf(wire.BadRequest, "ttl: it must be between 0 and %d seconds", int64(most/time.Second))
	}
	return FormerName("ttl_ms", time.Duration(ms)*time.Millisecond, "ttl", time.Duration(seconds)*time.Second)
}

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
