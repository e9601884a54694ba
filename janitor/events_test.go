package janitor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"switchboard/events"
	"switchboard/events/recording"
	"switchboard/events/truth"
)

// fakeSender is a Sender that accepts all events. It also holds the clock of the event store.
type fakeSender struct {
	mu       sync.Mutex // guards the fields below
	accepted []string
	offset   time.Duration // how far the clock is ahead
}

func (s *fakeSender) Timeout() time.Duration { return time.Second }

func (s *fakeSender) Send(_ context.Context, all [][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range all {
		var e struct{ Type, User, Channel string }
		if err := json.Unmarshal(text, &e); err != nil {
			return err
		}
		s.accepted = append(s.accepted, e.Type+" "+e.User+e.Channel)
	}
	return nil
}

// take returns and removes the accepted events, sorted.
func (s *fakeSender) take() (accepted []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	accepted, s.accepted = s.accepted, nil
	slices.Sort(accepted)
	return accepted
}

func (s *fakeSender) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.offset)
}

func (s *fakeSender) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset += d
}

// dispatcher returns a dispatcher for the stores of e.
func (e *env) dispatcher() (*events.Dispatcher, *fakeSender) {
	e.Helper()
	sender := &fakeSender{}
	d, err := events.NewDispatcher(events.Options{
		Store: events.NewMemory(events.StoreOptions{Now: sender.now}), Truth: truth.New(e.registry, e.queue), Sender: sender,
	})
	e.ok(err)
	return d, sender
}

// recordedRegistry is a registry whose changes are recorded. The methods of Wrapper hide those of
// the registry, which is embedded one level deeper.
type recordedRegistry struct {
	*recording.Wrapper
	plainRegistry
}

type plainRegistry struct{ testRegistry }

// withEvents returns options for a janitor that runs the rounds of d and records its own changes.
func withEvents(e *env, d *events.Dispatcher) func(*Options) {
	return func(o *Options) {
		o.Events, o.Registry = d, recordedRegistry{recording.Wrap(e.registry, d, zerolog.Nop()), plainRegistry{e.registry}}
	}
}

// eventRound runs one kind of the rounds of Options.Events.
func (e *env) eventRound(j *Janitor, kind string) {
	e.Helper()
	for _, r := range j.eventRounds() {
		if r.kind == kind {
			e.round(r.round)
		}
	}
}

func TestEventsOfDeadServer(t *testing.T) {
	eachStore(t, func(e *env) {
		d, sender := e.dispatcher()
		e.addServer("dead", 2, 2)
		e.addServer("alive", 1, 0)
		e.addClient("alive", "second", "u1")
		for _, user := range []string{"u0", "u1"} {
			e.ok(d.UsersChanged(e.Context(), user)[0])
		}
		for _, channel := range []string{"c0", "c1"} {
			e.ok(d.ChannelsChanged(e.Context(), channel)[0])
		}
		j := e.janitor(withEvents(e, d))
		report, err := j.Once(e.Context())
		e.ok(err)
		equal(e, "report", report, Report{Created: 4, Sent: 4})
		equal(e, "events", sender.take(), []string{"channel_occupied c0", "channel_occupied c1", "user_online u0", "user_online u1"})

		e.expireLease("dead")
		e.round(j.ServersRound)
		sender.advance(events.Grace)
		e.eventRound(j, due)
		e.round(j.ServersRound) // declares the server dead and removes its bindings
		e.eventRound(j, due)
		e.eventRound(j, send)
		equal(e, "events within the grace", sender.take(), nil)
		sender.advance(events.Grace)
		e.eventRound(j, due)
		e.eventRound(j, send)
		equal(e, "events after the grace", sender.take(), []string{"channel_vacated c1", "user_offline u0"})
	})
}

func TestEventsOfOrphan(t *testing.T) {
	e := memoryEnv(t)
	d, sender := e.dispatcher()
	e.addServer("gone", 1, 0)
	e.ok(d.ChannelsChanged(e.Context(), "c0")[0])
	j := e.janitor(withEvents(e, d))
	_, err := j.Once(e.Context())
	e.ok(err)
	sender.take()
	e.ok(e.registry.Forget(e.Context(), "gone"))
	equal(e, "report", e.round(j.QueuesRound), Report{Orphans: 1})
	sender.advance(events.Grace)
	e.eventRound(j, due)
	e.eventRound(j, send)
	equal(e, "events", sender.take(), []string{"channel_vacated c0"})
}

func TestRunSendsEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memoryEnv(t)
		d, sender := e.dispatcher()
		e.addServer("a", 0, 1)
		e.ok(d.UsersChanged(t.Context(), "u0")[0])
		var log bytes.Buffer
		j := e.janitor(func(o *Options) { o.Events, o.Logger = d, zerolog.New(zerolog.SyncWriter(&log)) })
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		e.ok(j.Run(ctx))
		equal(e, "events", sender.take(), []string{"user_online u0"})
		e.ok(e.registry.Forget(t.Context(), "a")) // the change is not recorded
		ctx, cancel = context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		e.ok(j.Run(ctx))
		equal(e, "events of the sweep", sender.take(), []string{"user_offline u0"})
		if strings.Count(log.String(), `{"level":"debug","round":"send","sent":1,"message":"janitor: cleaned up"}`) != 2 {
			t.Errorf("log:\n%s", &log)
		}
	})
}

func TestDryRunSendsNoEvents(t *testing.T) {
	e := memoryEnv(t)
	d, sender := e.dispatcher()
	e.addServer("a", 0, 1)
	e.ok(d.UsersChanged(t.Context(), "u0")[0])
	report, err := e.janitor(func(o *Options) { o.Events, o.DryRun = d, true }).Once(t.Context())
	e.ok(err)
	equal(e, "report", report, Report{DryRun: true})
	equal(e, "events", sender.take(), nil)
}

// failingRecorder is a Recorder whose calls fail.
type failingRecorder struct{}

var errRecorder = errors.New("the event store is unavailable")

func (failingRecorder) UsersChanged(context.Context, ...string) []error { return []error{errRecorder} }
func (failingRecorder) ChannelsChanged(context.Context, ...string) []error {
	return []error{errRecorder}
}

// TestRecorderFails checks that a client stays bound to a dead server until the change of its user
// is recorded.
func TestRecorderFails(t *testing.T) {
	e := memoryEnv(t)
	d, _ := e.dispatcher()
	e.addServer("dead", 0, 1)
	j := e.janitor(func(o *Options) {
		o.Registry = recordedRegistry{recording.Wrap(e.registry, failingRecorder{}, zerolog.Nop()), plainRegistry{e.registry}}
	})
	e.expireLease("dead")
	e.round(j.ServersRound)
	if _, err := j.ServersRound(t.Context()); !errors.Is(err, errRecorder) {
		t.Errorf("ServersRound: error %v", err)
	}
	equal(e, "server of the client", e.serverOf("dead-0"), "dead")
	equal(e, "listed", e.listed(), []string{"dead"})
	report := e.round(e.janitor(withEvents(e, d)).ServersRound)
	equal(e, "report", report, Report{Forgotten: 1, Clients: 1})
}
