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
	"switchboard/events/noting"
	"switchboard/events/truth"
)

// inbox is an endpoint that takes all, and the clock of the store of events.
type inbox struct {
	mu    sync.Mutex // guards the fields below
	got   []string
	ahead time.Duration
}

func (b *inbox) Timeout() time.Duration { return time.Second }

func (b *inbox) Send(_ context.Context, all [][]byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range all {
		var e struct{ Type, User, Channel string }
		if err := json.Unmarshal(text, &e); err != nil {
			return err
		}
		b.got = append(b.got, e.Type+" "+e.User+e.Channel)
	}
	return nil
}

// taken are the events that came, sorted, and forgets them.
func (b *inbox) taken() (got []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	got, b.got = b.got, nil
	slices.Sort(got)
	return got
}

func (b *inbox) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Add(b.ahead)
}

func (b *inbox) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ahead += d
}

// tells makes events of what is true in w.
func (w *world) tells() (*events.Dispatcher, *inbox) {
	w.Helper()
	b := &inbox{}
	d, err := events.NewDispatcher(events.Options{
		Store: events.NewMemory(events.StoreOptions{Now: b.now}), Truth: truth.New(w.registry, w.queue), Sender: b,
	})
	w.ok(err)
	return d, b
}

// noted is a registry whose changes are noted. The methods of Noting hide those of the registry,
// which is embedded one level deeper.
type noted struct {
	*noting.Noting
	plain
}

type plain struct{ testRegistry }

// notes has a janitor serve d, and note in it what it frees.
func notes(w *world, d *events.Dispatcher) func(*Options) {
	return func(o *Options) {
		o.Events, o.Registry = d, noted{noting.New(w.registry, d, zerolog.Nop()), plain{w.registry}}
	}
}

func TestDeadServersAreTold(t *testing.T) {
	eachWorld(t, func(w *world) {
		d, b := w.tells()
		w.server("dead", 2, 2)
		w.server("alive", 1, 0)
		w.client("alive", "second", "u1")
		for _, user := range []string{"u0", "u1"} {
			w.ok(d.UsersChanged(w.Context(), user)[0])
		}
		for _, channel := range []string{"c0", "c1"} {
			w.ok(d.ChannelsChanged(w.Context(), channel)[0])
		}
		j := w.janitor(notes(w, d))
		did, err := j.Once(w.Context())
		w.ok(err)
		want(w, "did", did, Report{Told: 4, Sent: 4})
		want(w, "told", b.taken(), []string{"channel_occupied c0", "channel_occupied c1", "user_online u0", "user_online u1"})

		w.loseLease("dead")
		w.round(j.ServersRound)
		b.pass(events.Grace)
		w.round(j.eventRounds()[1].round)
		w.round(j.ServersRound) // now it is declared dead, and cleaned
		w.round(j.eventRounds()[1].round)
		w.round(j.eventRounds()[2].round)
		want(w, "told within the grace", b.taken(), nil)
		b.pass(events.Grace)
		w.round(j.eventRounds()[1].round)
		w.round(j.eventRounds()[2].round)
		want(w, "told behind it", b.taken(), []string{"channel_vacated c1", "user_offline u0"})
	})
}

func TestOrphansAreTold(t *testing.T) {
	w := memoryWorld(t)
	d, b := w.tells()
	w.server("gone", 1, 0)
	w.ok(d.ChannelsChanged(w.Context(), "c0")[0])
	j := w.janitor(notes(w, d))
	_, err := j.Once(w.Context())
	w.ok(err)
	b.taken()
	w.ok(w.registry.Forget(w.Context(), "gone"))
	want(w, "did", w.round(j.QueuesRound), Report{Orphans: 1})
	b.pass(events.Grace)
	w.round(j.eventRounds()[1].round)
	w.round(j.eventRounds()[2].round)
	want(w, "told", b.taken(), []string{"channel_vacated c0"})
}

func TestRunTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := memoryWorld(t)
		d, b := w.tells()
		w.server("a", 0, 1)
		w.ok(d.UsersChanged(t.Context(), "u0")[0])
		var log bytes.Buffer
		j := w.janitor(func(o *Options) { o.Events, o.Logger = d, zerolog.New(zerolog.SyncWriter(&log)) })
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		w.ok(j.Run(ctx))
		want(w, "told", b.taken(), []string{"user_online u0"})
		w.ok(w.registry.Forget(t.Context(), "a")) // and nobody notes it
		ctx, cancel = context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		w.ok(j.Run(ctx))
		want(w, "found by the sweep", b.taken(), []string{"user_offline u0"})
		if strings.Count(log.String(), `{"level":"debug","round":"send","sent":1,"message":"janitor: cleaned up"}`) != 2 {
			t.Errorf("log:\n%s", &log)
		}
	})
}

func TestDryRunTellsNothing(t *testing.T) {
	w := memoryWorld(t)
	d, b := w.tells()
	w.server("a", 0, 1)
	w.ok(d.UsersChanged(t.Context(), "u0")[0])
	did, err := w.janitor(func(o *Options) { o.Events, o.DryRun = d, true }).Once(t.Context())
	w.ok(err)
	want(w, "did", did, Report{DryRun: true})
	want(w, "told", b.taken(), nil)
}

// deaf is a recorder that cannot.
type deaf struct{}

var errDeaf = errors.New("the store of events is away")

func (deaf) UsersChanged(context.Context, ...string) []error    { return []error{errDeaf} }
func (deaf) ChannelsChanged(context.Context, ...string) []error { return []error{errDeaf} }

// TestFreedWhenItIsNoted: a client stays with the dead server until it is noted that his user has lost it.
func TestFreedWhenItIsNoted(t *testing.T) {
	w := memoryWorld(t)
	d, _ := w.tells()
	w.server("dead", 0, 1)
	j := w.janitor(func(o *Options) { o.Registry = noted{noting.New(w.registry, deaf{}, zerolog.Nop()), plain{w.registry}} })
	w.loseLease("dead")
	w.round(j.ServersRound)
	if _, err := j.ServersRound(t.Context()); !errors.Is(err, errDeaf) {
		t.Errorf("the round: %v", err)
	}
	want(w, "holder", w.holder("dead-0"), "dead")
	want(w, "listed", w.listed(), []string{"dead"})
	did := w.round(w.janitor(notes(w, d)).ServersRound)
	want(w, "did", did, Report{Forgotten: 1, Clients: 1})
}
