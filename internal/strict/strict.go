// Package strict decodes the JSON objects that callers send. It refuses what encoding/json accepts
// silently, because a caller means something else by it:
//
//   - a required member that is missing: encoding/json leaves the zero value, so a score becomes 0
//   - null for a required member, or as an item of a list: JSON.stringify writes null for NaN
//   - a member that appears twice: one of the two values is lost
//   - a member in other capitals, such as "Score"
//   - members that are not known, and text after the object
//
// A member of a struct is required if its field has the tag `required:"true"`. null for another
// member means that it is absent: many encoders write it.
package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strconv"

	"switchboard/internal/payload"
	"switchboard/internal/wire"
)

// Decode decodes text, one JSON object, into the struct to which into points. The error is a
// *wire.Error that names the member.
func Decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return decodeError(d, text, err)
	}
	end := d.InputOffset()
	if rest := bytes.TrimLeft(text[end:], " \t\r\n"); len(rest) > 0 {
		return wire.Errorf(wire.BadRequest, "byte %d: text follows the JSON object", len(text)-len(rest)+1)
	}
	c := cursor{text: text[:end]}
	if c.peek() != '{' {
		return wire.Errorf(wire.BadRequest, "a JSON object is expected, not %s", wire.NameOfKind(c.peek()))
	}
	if p := c.value(shapeOf(reflect.TypeOf(into).Elem())); p != nil {
		return p.error()
	}
	return nil
}

// decodeError returns the error for text that encoding/json cannot decode.
func decodeError(d *json.Decoder, text []byte, err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return wire.Errorf(wire.BadRequest, "the body is empty, a JSON object is expected")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return wire.Errorf(wire.BadRequest, "not JSON: it ends early, after byte %d", len(text))
	}
	return wire.JSONError(err)
}

// problem is what is wrong with a member.
type problem struct {
	path string // of the member, such as import[1].id
	what string
}

func (p *problem) error() error { return wire.Errorf(wire.BadRequest, "%.200s: %s", p.path, p.what) }

// in adds the member or the item in which the problem is to its path.
func (p *problem) in(outer string) *problem {
	switch {
	case p.path == "" || p.path[0] == '[':
		p.path = outer + p.path
	default:
		p.path = outer + "." + p.path
	}
	return p
}

// cursor reads text that is valid JSON.
type cursor struct {
	text []byte
	at   int
}

// peek skips white space and commas, and returns the next byte.
func (c *cursor) peek() byte {
	for c.at < len(c.text) {
		switch b := c.text[c.at]; b {
		case ' ', '\t', '\r', '\n', ',', ':':
			c.at++
		default:
			return b
		}
	}
	return 0
}

// value reads one value, and compares it with the shape.
func (c *cursor) value(s *shape) *problem {
	first := c.peek()
	switch {
	case first == 'n' && !s.null && s.kind == "":
		return &problem{what: "null does not fit"}
	case first == 'n' && !s.null:
		return &problem{what: "null does not fit, expected " + s.kind}
	case first == '{' && s.members != nil:
		return c.object(s)
	case first == '{' && s.item != nil:
		return c.objectOf(s.item)
	case first == '[' && s.item != nil:
		return c.list(s.item)
	}
	c.skip()
	return nil
}

// object reads an object with the members of a struct.
func (c *cursor) object(s *shape) *problem {
	var seen uint64 // a bit for each member
	for c.at++; c.peek() != '}'; {
		name := c.name()
		m, known := s.members[name]
		if !known { // encoding/json ignores capitals
			return &problem{name, "unknown field"}
		}
		bit := uint64(1) << m.index
		if seen&bit != 0 {
			return &problem{name, "it appears twice"}
		}
		seen |= bit
		if c.peek() == 'n' && !m.required {
			c.skip()
			continue
		}
		if p := c.value(m.shape); p != nil {
			return p.in(name)
		}
	}
	c.at++
	for _, m := range s.inOrder {
		if m.required && seen&(1<<m.index) == 0 {
			return &problem{m.name, "it is missing"}
		}
	}
	return nil
}

// objectOf reads an object with any names.
func (c *cursor) objectOf(item *shape) *problem {
	for c.at++; c.peek() != '}'; {
		name := c.name()
		if p := c.value(item); p != nil {
			return p.in(name)
		}
	}
	c.at++
	return nil
}

func (c *cursor) list(item *shape) *problem {
	c.at++
	for i := 0; c.peek() != ']'; i++ {
		if p := c.value(item); p != nil {
			return p.in("[" + strconv.Itoa(i) + "]")
		}
	}
	c.at++
	return nil
}

// name reads the name of a member.
func (c *cursor) name() string {
	from := c.at
	c.skip()
	quoted := c.text[from:c.at]
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var name string
	_ = json.Unmarshal(quoted, &name) // the text is valid JSON
	return name
}

// skip reads one value and ignores it.
func (c *cursor) skip() {
	depth := 0
	for {
		switch c.peek() {
		case '"':
			c.at = payload.StringEnd(c.text, c.at) + 1
		case '{', '[':
			c.at++
			depth++
		case '}', ']':
			c.at++
			depth--
		default: // a number or a word
			for c.at < len(c.text) && bytes.IndexByte([]byte(" \t\r\n,:]}"), c.text[c.at]) < 0 {
				c.at++
			}
		}
		if depth == 0 {
			return
		}
	}
}
