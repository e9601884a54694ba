// Package payload checks JSON that comes from outside the process: the payloads of messages, the
// info of clients, and the bodies of requests.
package payload

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"switchboard/internal/wire"
)

// MaxDepth is the deepest nesting of arrays and objects that is accepted.
const MaxDepth = 64

// CheckText returns an error if a text is not UTF-8, or if its JSON is nested deeper than
// MaxDepth. It does not check that the text is JSON.
func CheckText(raw []byte) error {
	if !utf8.Valid(raw) {
		return wire.Errorf(wire.BadRequest, "the message is not UTF-8")
	}
	depth := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = StringEnd(raw, i)
		case '{', '[':
			if depth++; depth > MaxDepth {
				return wire.Errorf(wire.BadRequest, "byte %d: nested deeper than %d levels", i, MaxDepth)
			}
		case '}', ']':
			depth--
		}
	}
	return nil
}

// Compact checks a payload that a client or a backend has sent, and returns a copy without white
// space between tokens: a line break would end a line of raw TCP too early. limit is the most bytes
// of data, before white space is removed.
func Compact(data []byte, limit int) ([]byte, error) { return AppendChecked(nil, data, limit) }

// AppendChecked appends to dst what Compact returns.
func AppendChecked(dst, data []byte, limit int) ([]byte, error) {
	switch {
	case len(data) == 0:
		return nil, wire.Errorf(wire.BadRequest, "data: missing")
	case len(data) > limit:
		return nil, wire.Errorf(wire.TooLarge, "data: %d bytes, at most %d are allowed", len(data), limit)
	}
	s := NewScanner(data)
	if value, compact, ok := s.Value(); ok && len(value) == len(data) {
		if compact {
			return append(dst, data...), nil
		}
		return AppendCompact(slices.Grow(dst, len(data)), data), nil
	}
	return appendSlowly(dst, data)
}

// appendSlowly does the same as AppendChecked with encoding/json, which also accepts white space
// around the value. Its errors say what is wrong.
func appendSlowly(dst, data []byte) ([]byte, error) {
	if err := CheckText(data); err != nil {
		return nil, err
	}
	buf := bytes.NewBuffer(slices.Grow(dst, len(data)))
	if json.Compact(buf, data) != nil { // its error has no position
		return nil, wire.JSONError(json.Unmarshal(data, new(json.RawMessage)))
	}
	return buf.Bytes(), nil
}

// MaxInfo is the most bytes of a client's info.
const MaxInfo = 1 << 10

// CompactInfo checks the info of a client, which the other members of its channels receive. It is a
// JSON object. Absent and null return nil.
func CompactInfo(info []byte) ([]byte, error) {
	if len(info) == 0 || string(info) == "null" {
		return nil, nil
	}
	compact, err := Compact(info, MaxInfo)
	switch {
	case len(info) > MaxInfo:
		return nil, wire.Errorf(wire.TooLarge, "info: %d bytes, at most %d are allowed", len(info), MaxInfo)
	case err != nil:
		return nil, wire.Errorf(wire.BadRequest, "info: %s", wire.JSONError(err).Error())
	case compact[0] != '{':
		return nil, wire.Errorf(wire.BadRequest, "info: it is no JSON object")
	}
	return compact, nil
}

// IsPlain reports whether s stands in JSON as it is, between quotes: it is ASCII without control
// characters, quotes and backslashes.
func IsPlain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= utf8.RuneSelf || special[c] {
			return false
		}
	}
	return true
}

// IsCompact reports whether text is one JSON value without white space around its tokens. It may
// report false if the value is nested too deeply or is not UTF-8.
func IsCompact(text []byte) bool {
	s := NewScanner(text)
	value, compact, ok := s.Value()
	return ok && compact && len(value) == len(text)
}
