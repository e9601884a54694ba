package janitor

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"switchboard/janitor/task"
	"switchboard/queue"
)

// checkedQueue returns the differences of each channel, one list for each look.
type checkedQueue struct {
	channels []string
	looks    map[string][][]queue.StateDifference
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

func (q *checkedQueue) CheckState(_ context.Context, channel string) ([]queue.StateDifference, error) {
	looks := q.looks[channel]
	if len(looks) == 0 {
		return nil, errors.New("no more looks at " + channel)
	}
	q.looks[channel] = looks[1:]
	return looks[0], nil
}

// TestCheckStates checks that each channel is looked at once, and again if there is a difference,
// and that only differences of both looks are found.
func TestCheckStates(t *testing.T) {
	x, y, z := queue.StateDifference{Problem: "x"}, queue.StateDifference{Problem: "y", Remedy: "write it"}, queue.StateDifference{Problem: "z"}
	q := &checkedQueue{
		channels: []string{"good", "bad", "good", "changing", "bad"},
		looks: map[string][][]queue.StateDifference{
			"good": {nil}, "bad": {{x, y}, {y, z}}, "changing": {{x}, nil},
		},
	}
	var log strings.Builder
	check := CheckStates(q, zerolog.New(&log))
	found, err := check.Find(t.Context())
	if want := []task.Finding{{Subject: "bad", Problem: "y", Remedy: "write it"}}; err != nil || !slices.Equal(found, want) {
		t.Errorf("found %+v, %v; want %+v", found, err, want)
	}
	if !strings.Contains(log.String(), `"states":3,"differences":1`) {
		t.Errorf("log: %s", &log)
	}
	if _, err := check.Find(t.Context()); err == nil {
		t.Error("a failed look: no error")
	}
	q.channels, q.err = nil, errors.New("the store does not answer")
	if _, err := check.Find(t.Context()); !errors.Is(err, q.err) {
		t.Errorf("a failed list: %v", err)
	}
}
