package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"switchboard/internal/redispipe"
)

// line parses the result of a script for one of many targets: fields separated by newlines. The
// first invalid field sets err; it and the following fields are zero. A single string avoids an
// array and boxed numbers.
type line struct {
	rest string
	done bool
	err  error
}

// empty reports whether the script returned an empty string, as a refusal.
func (l *line) empty() bool { return l.err == nil && l.rest == "" }

func (l *line) text() string {
	if l.err != nil || l.done {
		l.fail("too short")
		return ""
	}
	field, rest, more := strings.Cut(l.rest, "\n")
	l.rest, l.done = rest, !more
	return field
}

func (l *line) integer() int64 {
	field := l.text()
	if l.err != nil {
		return 0
	}
	n, err := strconv.ParseInt(field, 10, 64)
	if err != nil {
		l.fail("%q is not an integer", field)
	}
	return n
}

// texts returns all remaining fields.
func (l *line) texts() []string {
	if l.err != nil || l.rest == "" {
		return nil
	}
	return strings.Split(l.rest, "\n")
}

func (l *line) fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf("unexpected reply of a script: "+format, args...)
	}
}

// outcomes runs the scripts of all targets. parse parses one result, with the reading of the
// store's clock. wrap adds context to the error of target i.
func outcomes[T any](r *Redis, ctx context.Context, targets []redispipe.Target,
	parse func(*line) (value T, clock int64), wrap func(i int, err error) error) []Outcome[T] {
	out := make([]Outcome[T], len(targets))
	for i, answer := range r.pipe.EvalEach(ctx, targets...) {
		if out[i].Err = answer.Err; out[i].Err == nil || errors.Is(out[i].Err, ErrNotReplicated) {
			text, _ := answer.Value.(string)
			l := &line{rest: text}
			value, clock := parse(l)
			r.clock.update(clock)
			if l.err == nil {
				out[i].Value = value
			} else {
				out[i].Err = l.err
			}
		}
		if out[i].Err != nil {
			out[i].Err = wrap(i, out[i].Err)
		}
	}
	return out
}
