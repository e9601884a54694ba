package janitor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"switchboard/janitor/task"
)

// TestOtherRounds checks that Run and Once call the rounds of other packages, that their changes
// are in the report, that an error stops nothing else, and that a dry run does not call them.
func TestOtherRounds(t *testing.T) {
	e := memoryEnv(t)
	failed := errors.New("the store does not answer")
	called := make(chan string, 100)
	call := func(ctx context.Context, name string) {
		select {
		case called <- name:
		case <-ctx.Done():
		}
	}
	rounds := []task.Round{
		{Name: "rooms", Every: time.Millisecond, Do: func(ctx context.Context) (int, error) {
			call(ctx, "rooms")
			return 3, failed
		}},
		{Name: "holds", Every: time.Hour, Do: func(ctx context.Context) (int, error) {
			call(ctx, "holds")
			return 4, nil
		}},
	}
	j := e.janitor(func(o *Options) { o.Rounds = rounds })
	report, err := j.Once(e.Context())
	if !errors.Is(err, failed) || !strings.Contains(err.Error(), "round rooms: ") {
		t.Errorf("error %v", err)
	}
	equal(e, "report", report, Report{Changed: 7})
	equal(e, "calls", []string{<-called, <-called}, []string{"rooms", "holds"})

	_, err = e.janitor(func(o *Options) { o.Rounds, o.DryRun = rounds, true }).Once(e.Context())
	e.ok(err)
	equal(e, "calls of a dry run", len(called), 0)

	ctx, cancel := context.WithCancel(e.Context())
	ended := make(chan error, 1)
	go func() { ended <- j.Run(ctx) }()
	equal(e, "repeated", []string{<-called, <-called}, []string{"rooms", "rooms"})
	cancel()
	e.ok(<-ended)
}

// TestBadRounds checks that New refuses rounds that cannot be run.
func TestBadRounds(t *testing.T) {
	do := func(context.Context) (int, error) { return 0, nil }
	e := memoryEnv(t)
	for want, rounds := range map[string][]task.Round{
		"janitor: two rounds have the name states": {{Name: states, Every: time.Second, Do: do}},
		"janitor: two rounds have the name a":      {{Name: "a", Every: time.Second, Do: do}, {Name: "a", Every: time.Second, Do: do}},
		"janitor: round a: Every must be positive": {{Name: "a", Do: do}},
	} {
		if _, err := New(Options{Registry: e.registry, Queue: e.queue, Rounds: rounds}); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
