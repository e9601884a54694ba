// Package payload checks JSON that comes from outside the process: the payloads of messages, the
// info of clients, and the bodies of requests.
package payload

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"switchboard/internal/wire"
)

// MaxDepth is the deepest nesting of arrays and objects that is accepted.
const MaxDepth = 64

// CheckText refuses what is not UTF-8 or nests deeper than MaxDepth.
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

// Compact checks a payload that a client or a backend sent and returns it without
// insignificant white space (a line break would end a TCP line early). limit is in
// bytes, of the payload as it came.
func Compact(data []byte, limit int) ([]byte, error) {
	switch {
	case len(data) == 0:
		return nil, wire.Errorf(wire.BadRequest, "data: missing")
	case len(data) > limit:
		return nil, wire.Errorf(wire.TooLarge, "data: %d bytes, at most %d are allowed", len(data), limit)
	}
	s := NewScanner(data)
	if value, compact, ok := s.Value(); ok && len(value) == len(data) {
		if compact {
			return bytes.Clone(data), nil
		}
		return AppendCompact(make([]byte, 0, len(data)), data), nil
	}
	return compactSlowly(data)
}

// compactSlowly is Compact by encoding/json, which says what is wrong; it also takes white space around the value.
func compactSlowly(data []byte) ([]byte, error) {
	if err := CheckText(data); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	buf.Grow(len(data))
	if json.Compact(&buf, data) != nil { // it does not say where
		return nil, wire.JSONError(json.Unmarshal(data, new(json.RawMessage)))
	}
	return buf.Bytes(), nil
}

// MaxInfo is the most bytes that the others in a channel are told of a client.
const MaxInfo = 1 << 10

// CompactInfo checks what a client or its token says of it to the others in a channel: a JSON object, or nothing.
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
