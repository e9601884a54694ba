package queue

import (
	"fmt"
	"strconv"
)

// arrayReply parses the array that a script returned. The first invalid element sets err. That
// element and the following ones are zero.
type arrayReply struct {
	rest []any
	err  error
}

// empty reports whether the script returned an empty array, as a refusal.
func (r *arrayReply) empty() bool { return r.err == nil && len(r.rest) == 0 }

// integer parses a number, which the script returns as a string if it may be large.
func (r *arrayReply) integer() int64 {
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

func (r *arrayReply) text() string {
	v := r.next()
	s, ok := v.(string)
	if !ok {
		r.fail("%T is not a string", v)
	}
	return s
}

// texts parses a nested array of strings.
func (r *arrayReply) texts() []string {
	v := r.next()
	list, ok := v.([]any)
	if !ok {
		r.fail("%T is not an array", v)
	}
	if len(list) == 0 {
		return nil
	}
	inner := arrayReply{rest: list}
	out := make([]string, len(list))
	for i := range out {
		out[i] = inner.text()
	}
	if inner.err != nil {
		r.fail("%v", inner.err)
	}
	return out
}

func (r *arrayReply) next() any {
	if len(r.rest) == 0 {
		r.fail("too short")
		return nil
	}
	v := r.rest[0]
	r.rest = r.rest[1:]
	return v
}

func (r *arrayReply) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("unexpected reply of a script: "+format, args...)
	}
	r.rest = nil
}
