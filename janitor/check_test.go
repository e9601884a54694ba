package janitor

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"testing"
)

// checkedQueue returns the differences of each channel, one list for each look.
type checkedQueue struct {
	channels []string
	looks    map[string][][]string
	err      error // of the sequence, after the channels
}

func (q *checkedQueue) ChannelsWithStateKeys(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, channel := range q.channels {
			if !yield(channel, nil) {
				return
			}
		}
		if q.err != nil {
			yield("", q.err)
		}
	}
}

func (q *checkedQueue) CheckState(_ context.Context, channel string) ([]string, error) {
	looks := q.looks[channel]
	if len(looks) == 0 {
		return nil, errors.New("no more looks at " + channel)
	}
	q.looks[channel] = looks[1:]
	return looks[0], nil
}

// TestCheckStates checks that each channel is looked at once, and again if there is a difference,
// and that only differences of both looks are reported.
func TestCheckStates(t *testing.T) {
	q := &checkedQueue{
		channels: []string{"good", "bad", "good", "changing", "bad"},
		looks:    map[string][][]string{"good": {nil}, "bad": {{"x", "y"}, {"y", "z"}}, "changing": {{"x"}, nil}},
	}
	var got []string
	report := func(channel, difference string) { got = append(got, channel+": "+difference) }
	channels, differences, err := CheckStates(t.Context(), q, report)
	if want := []string{"bad: y"}; channels != 3 || differences != 1 || err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%d channels, %d differences, %v, reported %q; want 3, 1, nil, %q", channels, differences, err, got, want)
	}
	if _, _, err := CheckStates(t.Context(), q, report); err == nil {
		t.Error("a failed look: no error")
	}
	q.channels, q.err = nil, errors.New("the store does not answer")
	if _, _, err := CheckStates(t.Context(), q, report); !errors.Is(err, q.err) {
		t.Errorf("a failed list: %v", err)
	}
}
