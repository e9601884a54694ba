package queue

import (
	"fmt"
	"strconv"
)

// reply parses the array that a script returned. The first invalid element sets err; it and the
// following elements are zero.
type reply struct {
	rest []any
	err  error
}

// empty reports whether the script returned an empty array, as a refusal.
func (r *reply) empty() bool { return r.err == nil && len(r.rest) == 0 }

// integer parses a number, which the script returns as a string if it may be large.
func (r *reply) integer() int64 {
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

func (r *reply) text() string {
	v := r.next()
	s, ok := v.(string)
	if !ok {
		r.fail("%T is not a string", v)
	}
	return s
}

// texts parses a nested array of strings.
func (r *reply) texts() []string {
	v := r.next()
	list, ok := v.([]any)
	if !ok {
		r.fail("%T is not an array", v)
	}
	if len(list) == 0 {
		return nil
	}
	inner := reply{rest: list}
	out := make([]string, len(list))
	for i := range out {
		out[i] = inner.text()
	}
	if inner.err != nil {
		r.fail("%v", inner.err)
	}
	return out
}

func (r *reply) next() any {
	if len(r.rest) == 0 {
		r.fail("too short")
		return nil
	}
	v := r.rest[0]
	r.rest = r.rest[1:]
	return v
}

func (r *reply) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("unexpected reply of a script: "+format, args...)
	}
	r.rest = nil
}
