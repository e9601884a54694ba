package api

import (
	"bytes"
	"slices"

	"switchboard/internal/payload"
)

// scanPush reads the usual forms of a push from s into req: one target, data, and a change of
// fields. A change of one field takes 0.2 us and 3 allocations, instead of 2.8 us and 29 with
// encoding/json. If scanPush returns false, the text may still be a push, but req and the position
// of s are undefined. Data and values share the memory of the text.
func scanPush(s *payload.Scanner, req *pushRequest) bool {
	var space [16][]byte
	seen := space[:0]
	for before := byte('{'); ; before = ',' {
		name, ok := s.Field(before)
		if !ok || !scanMember(s, string(name), req) {
			return false
		}
		if slices.ContainsFunc(seen, func(other []byte) bool { return bytes.Equal(other, name) }) {
			return false
		}
		seen = append(seen, name)
		if s.Take('}') {
			return true
		}
	}
}

// scanMember reads the value of one member.
func scanMember(s *payload.Scanner, name string, req *pushRequest) (ok bool) {
	switch name {
	case "channel":
		req.Channel, ok = scanString(s)
	case "user":
		req.User, ok = scanString(s)
	case "client":
		req.Client, ok = scanString(s)
	case "key":
		req.Key, ok = scanString(s)
	case "data":
		req.Data, ok = s.Raw()
	case "durable":
		req.Durable, ok = s.Bool()
	case "exclude":
		req.Exclude, ok = scanString(s)
	case "ttl":
		var ttl float64
		ttl, ok = s.Number()
		req.TTL = &ttl
	case "set":
		req.Set, ok = s.Values()
	case "del":
		req.Del, ok = s.Texts()
	case "add":
		req.Add, ok = s.Values()
	case "touch":
		req.Touch, ok = s.Texts()
	case "if":
		req.If, ok = s.Values()
	case "own":
		var own bool
		own, ok = s.Bool()
		req.Own = &own
	}
	return ok
}

func scanString(s *payload.Scanner) (string, bool) {
	text, ok := s.Text()
	return string(text), ok
}
