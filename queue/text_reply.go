package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"switchboard/internal/redispipe"
)

// textReply parses the result of a script for one of many targets: a string of fields, separated by
// newlines. The first invalid field sets err. That field and the following ones are zero. A single
// string avoids an array and boxed numbers.
type textReply struct {
	rest string
	done bool
	err  error
}

// empty reports whether the script returned an empty string, as a refusal.
func (r *textReply) empty() bool { return r.err == nil && r.rest == "" }

func (r *textReply) text() string {
	if r.err != nil || r.done {
		r.fail("too short")
		return ""
	}
	field, rest, more := strings.Cut(r.rest, "\n")
	r.rest, r.done = rest, !more
	return field
}

func (r *textReply) integer() int64 {
	field := r.text()
	if r.err != nil {
		return 0
	}
	n, err := strconv.ParseInt(field, 10, 64)
	if err != nil {
		r.fail("%q is not an integer", field)
	}
	return n
}

// texts returns all remaining fields.
func (r *textReply) texts() []string {
	if r.err != nil || r.rest == "" {
		return nil
	}
	return strings.Split(r.rest, "\n")
}

func (r *textReply) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("unexpected reply of a script: "+format, args...)
	}
}

// outcomes runs the scripts of all targets. parse returns the value in one result, and the reading
// of the store's clock. It may return a value with an error of the reply. wrap adds context to the
// error of target i.
func outcomes[T any](r *Redis, ctx context.Context, targets []redispipe.Target,
	parse func(*textReply) (value T, clock int64), wrap func(i int, err error) error) []Outcome[T] {
	out := make([]Outcome[T], len(targets))
	for i, answer := range r.pipe.EvalEach(ctx, targets...) {
		if out[i].Err = answer.Err; out[i].Err == nil || errors.Is(out[i].Err, ErrNotReplicated) {
			text, _ := answer.Value.(string)
			reply := &textReply{rest: text}
			value, clock := parse(reply)
			r.clock.update(clock)
			out[i].Value, out[i].Err = value, cmp.Or(reply.err, out[i].Err)
		}
		if out[i].Err != nil {
			out[i].Err = wrap(i, out[i].Err)
		}
	}
	return out
}
