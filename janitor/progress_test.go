package janitor

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/janitor/heartbeat"
)

// recordedBeats keeps the last report of each janitor.
type recordedBeats struct {
	mu       sync.Mutex // guards the fields below
	janitors map[string]heartbeat.Janitor
	reports  int
}

// Report implements Heartbeats.
func (r *recordedBeats) Report(_ context.Context, j heartbeat.Janitor) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports++
	r.janitors[j.ID] = j
	return nil
}

// Remove implements Heartbeats.
func (r *recordedBeats) Remove(_ context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.janitors, id)
	return nil
}

// of returns the last report of a janitor that has not ended.
func (r *recordedBeats) of(id string) heartbeat.Janitor {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.janitors[id]
}

// TestReports checks that a janitor reports its rounds while it runs, also if they fail, and no
// longer after its end.
func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memoryEnv(t)
		beats := &recordedBeats{janitors: map[string]heartbeat.Janitor{}}
		var calls atomic.Int64
		j := e.janitor(func(o *Options) {
			o.Registry, o.Heartbeats, o.ID, o.Version = failsTwice{e.registry, &calls}, beats, "j1", "1.0"
			o.QueuesEvery, o.StatesEvery = time.Hour, time.Hour
		})
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- j.Run(ctx) }()
		started := time.Now()

		<-time.After(6 * time.Second) // one or two rounds, which fail
		synctest.Wait()
		first := beats.of("j1")
		if r := first.Rounds["servers"]; r.Failed == 0 || r.Every != 3000 || r.Idle != 5000 || first.StartedAt != started.UnixMilli() {
			t.Errorf("while rounds fail: %+v", first)
		}
		<-time.After(30 * time.Second)
		synctest.Wait()
		later := beats.of("j1")
		if r := later.Rounds["servers"]; r.Failed != 0 || r.Idle > 4000 || later.Version != "1.0" || later.Webhooks || later.Once {
			t.Errorf("while rounds are complete: %+v", later)
		}
		if r := later.Rounds["queues"]; r.Every != 3600_000 || r.Idle != 35_000 {
			t.Errorf("a round that is not due: %+v", r)
		}
		cancel()
		e.ok(<-result)
		equal(e, "janitors after the end", len(beats.janitors), 0)
	})
}

// TestOnceReports checks that a janitor for one round reports it, and a dry run does not.
func TestOnceReports(t *testing.T) {
	e := memoryEnv(t)
	beats := &recordedBeats{janitors: map[string]heartbeat.Janitor{}}
	j := e.janitor(func(o *Options) { o.Heartbeats, o.ID = beats, "cron" })
	e.round(j.Once)
	if d := beats.of("cron"); !d.Once || d.Rounds["servers"].Failed != 0 || len(d.Rounds) != 3 {
		t.Errorf("%+v", d)
	}
	e.round(e.janitor(func(o *Options) { o.Heartbeats, o.ID, o.DryRun = beats, "dry", true }).Once)
	equal(e, "reports", beats.reports, 1)
	if _, err := New(Options{Registry: e.registry, Queue: e.queue, Heartbeats: beats}); err == nil {
		t.Error("Heartbeats without an ID are accepted")
	}
}
