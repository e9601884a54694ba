package queue

import (
	"fmt"
	"strconv"
)

// reply reads the array that a script returned, from front to back. The first element
// that is not what the script's header says makes err, and all that follow are zero.
type reply struct {
	rest []any
	err  error
}

// empty says whether the script returned {}, by which the fenced ones refuse.
func (r *reply) empty() bool { return r.err == nil && len(r.rest) == 0 }

// integer reads a number, sent as such or, when it may be large, as a string.
func (r *reply) integer() int64 {
	switch v := r.next().(type) {
	case int64:
		return v
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			r.fail("%q is no integer", v)
		}
		return n
	default:
		r.fail("%T is no integer", v)
		return 0
	}
}

func (r *reply) text() string {
	v := r.next()
	s, ok := v.(string)
	if !ok {
		r.fail("%T is no string", v)
	}
	return s
}

// texts reads a nested array of strings.
func (r *reply) texts() []string {
	v := r.next()
	list, ok := v.([]any)
	if !ok {
		r.fail("%T is no array", v)
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
