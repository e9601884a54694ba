package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"switchboard/internal/redispipe"
)

// line reads what a script returned for one of many targets: fields with a newline between, from front to back. The
// first that is not what the script's header says makes err, and all that follow are zero. As one string it
// needs no array and no boxed numbers here.
type line struct {
	left string
	done bool
	err  error
}

// empty says whether the script returned ”, by which one refuses.
func (l *line) empty() bool { return l.err == nil && l.left == "" }

func (l *line) text() string {
	if l.err != nil || l.done {
		l.fail("too short")
		return ""
	}
	field, left, more := strings.Cut(l.left, "\n")
	l.left, l.done = left, !more
	return field
}

func (l *line) integer() int64 {
	field := l.text()
	if l.err != nil {
		return 0
	}
	n, err := strconv.ParseInt(field, 10, 64)
	if err != nil {
		l.fail("%q is no integer", field)
	}
	return n
}

// rest is all fields that are left.
func (l *line) rest() []string {
	if l.err != nil || l.left == "" {
		return nil
	}
	return strings.Split(l.left, "\n")
}

func (l *line) fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf("unexpected reply of a script: "+format, args...)
	}
}

// outcomes runs the scripts of all targets. read takes an answer apart, the store's clock with it, and wrap says of
// an error what it is about.
func outcomes[T any](r *Redis, ctx context.Context, targets []redispipe.Target,
	read func(*line) (value T, clock int64), wrap func(i int, err error) error) []Outcome[T] {
	out := make([]Outcome[T], len(targets))
	for i, answer := range r.pipe.EvalEach(ctx, targets...) {
		if out[i].Err = answer.Err; out[i].Err == nil || errors.Is(out[i].Err, ErrNotReplicated) {
			text, _ := answer.Value.(string)
			l := &line{left: text}
			value, clock := read(l)
			r.horizon.read(clock)
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
