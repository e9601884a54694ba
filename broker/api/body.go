package api

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"

	"switchboard/internal/wire"
)

// Most pushes look alike: {"channel":"news","data":…}, and so do most batches. Reading those without encoding/json, in
// one pass over the bytes, takes 0.2 us and 1 allocation in place of 5.6 and 12, as each push of a batch does, and leaves
// next to nothing to the garbage collector. What looks different in any way is encoding/json's, which also words all errors.

// body is that of a request, as far as it came.
type body struct {
	text []byte
	err  error // why there is no more of it
}

// whole is the body, or nothing when not all of it came.
func (b body) whole() []byte {
	if b.err != nil {
		return nil
	}
	return b.text
}

// reader gives the body, and how it ended, to whoever reads it the long way.
func (b body) reader() io.Reader {
	if b.err != nil {
		return io.MultiReader(bytes.NewReader(b.text), failing{b.err})
	}
	return bytes.NewReader(b.text)
}

// failing is a reader that has nothing but an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// onePush is a push that is one target and the data, in this order, and nothing else.
type onePush struct {
	target
	data    []byte // a JSON value, UTF-8 and nested no deeper than wire.MaxDepth; a piece of the body
	compact bool   // without white space
}

// plainPush takes one; ok is false for anything else, and then s is somewhere in it.
func plainPush(s *wire.Scanner) (p onePush, ok bool) {
	field, ok := s.Field('{')
	if !ok {
		return p, false
	}
	switch string(field) {
	case "channel":
		p.kind = "channel"
	case "user":
		p.kind = "user"
	case "client":
		p.kind = "client"
	default:
		return p, false
	}
	name, ok := s.Text()
	if !ok || len(name) == 0 {
		return p, false
	}
	if field, ok = s.Field(','); !ok || string(field) != "data" {
		return p, false
	}
	if p.data, p.compact, ok = s.Value(); !ok || !s.Take('}') {
		return p, false
	}
	p.name = string(name)
	return p, true
}

// lonePush reads a body that is a plain push.
func lonePush(text []byte) (p onePush, ok bool) {
	s := wire.NewScanner(text)
	p, ok = plainPush(&s)
	return p, ok && s.End()
}

// plainBatch reads {"messages":[…]} with objects in it, most of them plain pushes. It appends them
// to dst, which is empty. ok is false for all other texts, and for those with more than most.
// Reading ends where there are more targets than mostTargets; then err says so, and ok is true.
func plainBatch(dst []batched, text []byte, most, mostTargets int) (messages []batched, ok bool, err error) {
	messages = dst
	targets := tally{most: mostTargets}
	s := wire.NewScanner(text)
	if field, ok := s.Field('{'); !ok || string(field) != "messages" || !s.Take('[') {
		return nil, false, nil
	}
	for {
		if len(messages) == most {
			return nil, false, nil
		}
		m, ok := oneOfBatch(&s)
		if !ok {
			return nil, false, nil
		}
		if err := targets.add(len(messages), &m); err != nil {
			return nil, true, err
		}
		if len(messages) == 0 { // others are about as long
			taken := len(text) - s.Left() - len(`{"messages":[`)
			messages = slices.Grow(messages, min(most, 1+s.Left()/max(1, taken)))
		}
		messages = append(messages, m)
		if !s.Take(',') {
			return messages, s.Take(']') && s.Take('}') && s.End(), nil
		}
	}
}

// oneOfBatch takes an object; ok is false where there is none.
func oneOfBatch(s *wire.Scanner) (m batched, ok bool) {
	start := *s
	if m.onePush, ok = plainPush(s); ok {
		return m, true
	}
	*s = start
	text, _, ok := s.Value()
	if !ok || text[0] != '{' {
		return m, false
	}
	return longPush(text), true
}

// names is a list of which no more is read than any limit allows.
type names []string

// maxNames is that. A body of 16 MiB has room for more than five million, which took half a gigabyte before they were counted.
const maxNames = 1 << 16

// UnmarshalJSON implements json.Unmarshaler. What is wrong with text otherwise is for encoding/json to say.
func (n *names) UnmarshalJSON(text []byte) error {
	commas := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = wire.StringEnd(text, i)
		case ',':
			if commas++; commas == maxNames {
				return wire.Errorf(wire.TooLarge, "more than %d names", maxNames)
			}
		}
	}
	return json.Unmarshal(text, (*[]string)(n))
}
