package janitor

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"switchboard/internal/await"
	"switchboard/internal/leader"
	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
	"switchboard/internal/redisurl"
	"switchboard/janitor/task"
	"switchboard/queue"
	"switchboard/registry"
)

// TestSchedule: after a loss of the store the rounds follow each other until all parts were looked
// at, and then once an hour.
func TestSchedule(t *testing.T) {
	epoch, now := uint64(7), time.Now()
	s := newSchedule(
		task.Round{Every: time.Minute, Calm: time.Hour, Parts: func() int { return 3 }}, nil, func() uint64 { return epoch })
	count := func(minutes int) (rounds int) {
		for range minutes {
			now = now.Add(time.Minute)
			if s.isDue(now) {
				s.ended(now)
				rounds++
			}
		}
		return rounds
	}
	for _, step := range []struct {
		what          string
		minutes, want int
	}{{"after the start", 30, 4}, {"in an hour", 60, 1}, {"in ten hours", 600, 10}} {
		if got := count(step.minutes); got != step.want {
			t.Errorf("%s: %d rounds, want %d", step.what, got, step.want)
		}
	}
	epoch++
	if got := count(30); got != 4 {
		t.Errorf("after a failover: %d rounds, want 4", got)
	}
	epoch++
	for range 3 { // rounds that fail
		if now = now.Add(time.Minute); !s.isDue(now) {
			t.Error("after a round that failed, the next one is not due")
		}
	}
	s.parts = nil
	if got := count(30); got != 2 {
		t.Errorf("after rounds that failed: %d rounds, want 2", got)
	}
}

// TestFailoverInRound: a failover in a round, which may have looked before it, makes another one
// due.
func TestFailoverInRound(t *testing.T) {
	epoch, now := uint64(1), time.Now()
	s := newSchedule(task.Round{Every: time.Minute, Calm: time.Hour}, nil, func() uint64 { return epoch })
	for range 2 {
		if !s.isDue(now) {
			t.Fatal("the first rounds are not due")
		}
		s.ended(now)
	}
	s.last = now.Add(-time.Hour)
	if !s.isDue(now) {
		t.Fatal("the round of an hour later is not due")
	}
	epoch++
	s.ended(now)
	if !s.isDue(now) || !s.lost {
		t.Error("no round is due after the failover")
	}
}

// startLeading runs a janitor whose round sends its name to calls.
func startLeading(t *testing.T, client redis.UniversalClient, prefix, name string, calls chan string) (j *Janitor, stop func()) {
	pipe := redispipe.New(client, redispipe.Options{})
	j, err := New(Options{
		Registry: registry.NewRedis(pipe, registry.Options{Prefix: prefix}), Queue: queue.NewRedis(pipe, queue.Options{Prefix: prefix}),
		Leases: leader.New(pipe, prefix+"j_r_", zerolog.Nop()),
		Rounds: []task.Round{{Name: "round", Every: time.Hour, Do: func(context.Context) (int, error) { calls <- name; return 0, nil }}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- j.Run(ctx) }()
	stopped := false
	stop = func() {
		if cancel(); !stopped {
			stopped = true
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	return j, stop
}

// TestLeaderKilled: of two janitors one makes the rounds. When it is killed, the other one makes
// the next round at once, and not at its time.
func TestLeaderKilled(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, open := range map[string]func() redis.UniversalClient{
		"redis":   func() redis.UniversalClient { return single.Client(t) },
		"cluster": func() redis.UniversalClient { return cluster.Client(t) },
	} {
		t.Run(name, func(t *testing.T) {
			calls, first := make(chan string, 10), open()
			leads, stop := startLeading(t, first, t.Name()+":", "first", calls)
			if got := <-calls; got != "first" {
				t.Fatalf("the round was made by %s", got)
			}
			follows, _ := startLeading(t, open(), t.Name()+":", "second", calls)
			if err := follows.opts.Leases.Look(t.Context()); err != nil || follows.schedules["round"].lease.Leads() {
				t.Fatalf("both janitors lead, or %v", err)
			}
			for j, want := range map[*Janitor]bool{leads: true, follows: false} {
				if _, reported := j.describe(false).Rounds["round"]; reported != want {
					t.Errorf("a janitor reports the round: %v, want %v", reported, want)
				}
			}
			_ = first.(io.Closer).Close() // so it cannot give its leases back
			stop()
			if got := <-calls; got != "second" || len(calls) > 0 {
				t.Errorf("the next round was made by %s, and %d more were made", got, len(calls))
			}
		})
	}
}

// TestRestart: after a restart of Redis the rounds that look for losses are due again.
func TestRestart(t *testing.T) {
	server := redistest.Start(t)
	client, watch, err := redisurl.Open("redis://" + server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := watch.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	s := newSchedule(task.Round{Every: time.Minute, Calm: time.Hour}, nil, watch.Epoch)
	for s.isDue(now) {
		s.ended(now)
	}
	server.Kill()
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	await.True(t, "Redis answers", func() bool { return watch.Begin(t.Context()) == nil })
	if !s.isDue(now) {
		t.Error("no round is due after the restart")
	}
}
