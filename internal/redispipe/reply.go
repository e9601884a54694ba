package redispipe

import (
	"context"
	"fmt"
	"strconv"
)

// Reply parses the array that a script returned. The first invalid element sets Err. That element
// and the following ones are zero.
type Reply struct {
	rest []any
	Err  error
}

// ReplyOf returns the reply of a script whose result is value, such as Answer.Value.
func ReplyOf(value any) *Reply {
	list, ok := value.([]any)
	r := &Reply{rest: list}
	if !ok {
		r.fail("%T is not an array", value)
	}
	return r
}

// EvalArray is Eval for a script that returns an array.
func (p *Pipe) EvalArray(ctx context.Context, script *Script, keys []string, args ...any) (*Reply, error) {
	value, err := p.Eval(ctx, script, keys, args...)
	if err != nil {
		return nil, err
	}
	r := ReplyOf(value)
	return r, r.Err
}

// EvalInt is Eval for a script that returns an integer.
func (p *Pipe) EvalInt(ctx context.Context, script *Script, keys []string, args ...any) (int64, error) {
	value, err := p.Eval(ctx, script, keys, args...)
	if err != nil {
		return 0, err
	}
	r := Reply{rest: []any{value}}
	return r.Int(), r.Err
}

// Len returns the number of elements that are left.
func (r *Reply) Len() int { return len(r.rest) }

// Int parses a number, which the script returns as a string if it may be large.
func (r *Reply) Int() int64 {
	switch v := r.next().(type) {
	case int64:
		return v
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			r.fail("%q is not an integer", v)
		}
		return n
	default:
		r.fail("%T is not an integer", v)
		return 0
	}
}

// Text parses a string.
func (r *Reply) Text() string {
	v := r.next()
	s, ok := v.(string)
	if !ok {
		r.fail("%T is not a string", v)
	}
	return s
}

// Rest parses all elements that are left as strings. It returns nil if there are none.
func (r *Reply) Rest() []string {
	if len(r.rest) == 0 {
		return nil
	}
	texts := make([]string, len(r.rest))
	for i := range texts {
		texts[i] = r.Text()
	}
	return texts
}

// Texts parses a nested array of strings. It returns nil if the array is empty.
func (r *Reply) Texts() []string {
	inner := ReplyOf(r.next())
	texts := inner.Rest()
	if inner.Err != nil {
		r.fail("%w", inner.Err)
	}
	return texts
}

func (r *Reply) next() any {
	if len(r.rest) == 0 {
		r.fail("too short")
		return nil
	}
	v := r.rest[0]
	r.rest = r.rest[1:]
	return v
}

func (r *Reply) fail(format string, args ...any) {
	if r.Err == nil {
		r.Err = fmt.Errorf("unexpected reply of a script: "+format, args...)
	}
	r.rest = nil
}

// Pairs returns names and values, which follow each other in the list, as a map.
func Pairs(list []string) map[string]string {
	m := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		m[list[i]] = list[i+1]
	}
	return m
}
