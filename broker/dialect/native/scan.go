package native

import (
	"bytes"
	"encoding/json"

	"switchboard/internal/payload"
	"switchboard/internal/wire"
)

// scan decodes a request that is one object with known members only, as most are written: without
// escapes in strings, and without null. scan returns false for any other text, valid or not;
// encoding/json then decides. A `connect` takes 0.6 instead of 2.5 µs, and three allocations
// instead of nine. A change of one field takes 0.35 instead of 7.4 µs, and 5 allocations instead of
// 27.
func scan(r *wire.Request, raw []byte) bool {
	s := payload.NewScanner(raw)
	s.Within(1)
	for prefix := byte('{'); ; prefix = ',' {
		name, ok := s.Field(prefix)
		if !ok || !scanMember(r, string(name), &s) {
			return false
		}
		if s.Take('}') {
			return s.End()
		}
	}
}

// scanMember decodes the value of the member called name.
func scanMember(r *wire.Request, name string, s *payload.Scanner) (ok bool) {
	switch name {
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
	case "presence":
		r.Presence, ok = s.Bool()
	case "data":
		r.Data, ok = copyOf(s)
	case "method":
		r.Method, ok = textOf(s)
	case "state", "held", "key", "durable", "echo":
		ok = scanStateRequest(r, name, s)
	default:
		ok = scanChange(r, name, s)
	}
	return ok
}

// scanStateRequest decodes a member of wire.StateRequest.
func scanStateRequest(r *wire.Request, name string, s *payload.Scanner) (ok bool) {
	if r.StateRequest == nil {
		r.StateRequest = new(wire.StateRequest)
	}
	switch name {
	case "state": // a prefix is left to encoding/json
		ok, _ = s.Bool()
		r.State = new(wire.Selector)
	case "held":
		r.Held, ok = s.Bool()
	case "key":
		r.Key, ok = textOf(s)
	case "durable":
		r.Durable, ok = s.Bool()
	case "echo":
		var echo bool
		echo, ok = s.Bool()
		r.Echo = &echo
	}
	return ok
}

// scanChange decodes a member of wire.Change. It leaves an unknown member to encoding/json.
func scanChange(r *wire.Request, name string, s *payload.Scanner) (ok bool) {
	if r.Change == nil {
		r.Change = new(wire.Change)
	}
	switch name {
	case "set":
		r.Set, ok = copiesOf(s)
	case "del":
		r.Del, ok = s.Texts()
	case "add":
		r.Add, ok = copiesOf(s)
	case "touch":
		r.Touch, ok = s.Texts()
	case "if":
		r.If, ok = copiesOf(s)
	case "ttl":
		var ttl float64
		ttl, ok = s.Number()
		r.TTL = &ttl
	case "own":
		var own bool
		own, ok = s.Bool()
		r.Own = &own
	}
	return ok
}

// copyOf returns a copy of the next value.
func copyOf(s *payload.Scanner) (json.RawMessage, bool) {
	value, ok := s.Raw()
	return bytes.Clone(value), ok
}

// copiesOf returns the members of the next object, with copies of their values.
func copiesOf(s *payload.Scanner) (wire.Values, bool) {
	list, ok := s.Values()
	for i := range list {
		list[i].JSON = bytes.Clone(list[i].JSON)
	}
	return list, ok
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
	case wire.TypePublish:
		return wire.TypePublish
	case wire.TypeRequest:
		return wire.TypeRequest
	case wire.TypeAck:
		return wire.TypeAck
	case wire.TypePing:
		return wire.TypePing
	case wire.TypePong:
		return wire.TypePong
	}
	return string(t)
}
