package janitor

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/registry"
)

func want[V any](w *world, what string, got, want V) {
	w.Helper()
	if !reflect.DeepEqual(got, want) {
		w.Fatalf("%s: %+v, want %+v", what, got, want)
	}
}

func TestKilledServerIsFreed(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.server("dead", 5, 7)
		w.server("live", 3, 0)
		w.client("dead", "anonymous", "")
		w.client("dead", "moved", "u0")
		w.client("live", "moved", "u0")
		w.ok(w.registry.HoldClients(w.Context(), "dead", []string{"unborn"})) // held, and never bound
		j := w.janitor(func(o *Options) { o.Chunk = 2 })
		want(w, "all alive", w.round(j.ServersRound), Report{})

		w.loseLease("dead")
		want(w, "first look", w.round(j.ServersRound), Report{Suspected: 1})
		want(w, "second look", w.round(j.ServersRound), Report{Buried: 1, Forgotten: 1, Channels: 5, Clients: 8})
		want(w, "afterwards", w.round(j.ServersRound), Report{})

		want(w, "listed", w.listed(), []string{"live"})
		want(w, "c0", w.channelServers("c0"), []string{"live"})
		want(w, "c4", len(w.channelServers("c4")), 0)
		names, _, err := w.registry.Channels(w.Context(), "", "", 100)
		w.ok(err)
		slices.Sort(names)
		want(w, "ch_list", names, []string{"c0", "c1", "c2"})
		want(w, "dead-3", w.holder("dead-3"), "")
		want(w, "anonymous", w.holder("anonymous"), "")
		want(w, "moved", w.holder("moved"), "live")
		want(w, "u0", w.bindings("u0"), []string{"dead-0@", "moved@live"})
		want(w, "u6", w.bindings("u6"), []string{"dead-6@"})
		if err := w.registry.Beat(w.Context(), registry.Server{ID: "dead"}); !errors.Is(err, registry.ErrDead) {
			w.Fatalf("the dead server beats: %v", err)
		}
	})
}

func TestServerBackBeforeTheBuryIsSpared(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.server("a", 1, 1)
		j := w.janitor(nil)
		w.round(j.ServersRound)
		w.loseLease("a")
		want(w, "first look", w.round(j.ServersRound), Report{Suspected: 1})
		w.ok(w.registry.Beat(w.Context(), registry.Server{ID: "a", Host: "a:1"}))
		want(w, "it came back", w.round(j.ServersRound), Report{})
		w.loseLease("a")
		want(w, "suspected from the start", w.round(j.ServersRound), Report{Suspected: 1})

		// Back between the look at its lease and the burial.
		j.opts.Probe = func(ctx context.Context, _, _ string) bool {
			w.ok(w.registry.Beat(ctx, registry.Server{ID: "a", Host: "a:1"}))
			return false
		}
		want(w, "it came back in time", w.round(j.ServersRound), Report{})
		want(w, "its channel", w.channelServers("c0"), []string{"a"})
		want(w, "its client", w.holder("a-0"), "a")
	})
}

func TestServerThatLeavesIsNotSuspected(t *testing.T) {
	w := memoryWorld(t)
	w.server("a", 0, 0)
	j := w.janitor(nil)
	w.round(j.ServersRound)
	w.loseLease("a")
	w.round(j.ServersRound)
	w.ok(w.registry.Leave(t.Context(), "a"))
	want(w, "gone", w.round(j.ServersRound), Report{})
	want(w, "suspects and hosts", len(j.suspects)+len(j.hosts), 0)
}

func TestDryRunChangesNothing(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.server("dead", 3, 4)
		w.client("dead", "moved", "u0")
		w.server("live", 0, 0)
		w.client("live", "moved", "u0")
		j := w.janitor(func(o *Options) { o.DryRun = true })
		w.loseLease("dead")
		w.round(j.ServersRound)
		would := Report{Buried: 1, Forgotten: 1, Channels: 3, Clients: 4, DryRun: true}
		want(w, "would", w.round(j.ServersRound), would)
		want(w, "would again", w.round(j.ServersRound), would)

		want(w, "listed", w.listed(), []string{"dead", "live"})
		want(w, "c0", w.channelServers("c0"), []string{"dead"})
		want(w, "client", w.holder("dead-0"), "dead")
		want(w, "u1", w.bindings("u1"), []string{"dead-1@dead"})
		w.ok(w.registry.Beat(w.Context(), registry.Server{ID: "dead"}))

		// The same server without the dry run, buried but not yet cleaned.
		w.loseLease("dead")
		_, err := w.registry.DeclareDead(w.Context(), "dead")
		w.ok(err)
		want(w, "would clean", w.round(j.ServersRound), Report{Forgotten: 1, Channels: 3, Clients: 4, DryRun: true})
		want(w, "did", w.round(w.janitor(nil).ServersRound), Report{Forgotten: 1, Channels: 3, Clients: 4})
	})
}

// failing is a registry in which some calls fail.
type failing struct {
	Registry
	unbind func(channel string) error
	drop   func(client string) error
}

func (f failing) UnbindChannel(ctx context.Context, server, channel string) error {
	if err := f.unbind(channel); err != nil {
		return err
	}
	return f.Registry.UnbindChannel(ctx, server, channel)
}

func (f failing) DropClient(ctx context.Context, server, client string) error {
	if err := f.drop(client); err != nil {
		return err
	}
	return f.Registry.DropClient(ctx, server, client)
}

func fine(string) error { return nil }

func TestInterruptedCleaningIsFinishedByAnother(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.server("dead", 10, 10)
		w.loseLease("dead")
		w.round(w.janitor(nil).ServersRound)

		const all = 1000
		w.cutOff(3, all) // among the channels
		w.cutOff(all, 4) // among the clients

		did := w.round(w.janitor(nil).ServersRound)
		want(w, "the other one", did, Report{Forgotten: 1, Channels: did.Channels, Clients: did.Clients})
		if did.Channels > 7 || did.Clients > 6 {
			w.Fatalf("the other one began anew: %+v", did)
		}
		want(w, "listed", len(w.listed()), 0)
		for i := range 10 {
			want(w, "channel", len(w.channelServers(fmt.Sprintf("c%d", i))), 0)
			want(w, "user", w.bindings(fmt.Sprintf("u%d", i)), []string{fmt.Sprintf("dead-%d@", i)})
			want(w, "client", w.holder(fmt.Sprintf("dead-%d", i)), "")
		}
	})
}

// cutOff has a janitor stop in the middle of its second round, after so many calls.
func (w *world) cutOff(unbinds, drops int) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	after := func(n int) func(string) error {
		return func(string) error {
			if n--; n < 0 {
				cancel()
				return errors.New("cut off")
			}
			return nil
		}
	}
	j := w.janitor(func(o *Options) {
		o.Registry, o.Chunk, o.Parallel = failing{w.registry, after(unbinds), after(drops)}, 2, 1
	})
	_, first := j.ServersRound(ctx)
	_, second := j.ServersRound(ctx)
	if err := errors.Join(first, second); !errors.Is(err, context.Canceled) {
		w.Fatalf("the round was not cut off: %v", err)
	}
	want(w, "still listed", w.listed(), []string{"dead"})
}

func TestBadItemsDoNotStopTheRest(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.server("dead", 30, 2)
		w.server("dead2", 1, 0)
		w.loseLease("dead")
		w.loseLease("dead2")
		bad := func(channel string) error {
			if strings.HasPrefix(channel, "c1") { // c1, c10 to c19
				return fmt.Errorf("%s is bad", channel)
			}
			return nil
		}
		j := w.janitor(func(o *Options) {
			o.Registry = failing{w.registry, bad, fine}
			o.Chunk = 15 // more than are bad, so that no chunk can be bad as a whole
		})
		w.round(j.ServersRound)
		did, err := j.ServersRound(w.Context())
		if err == nil || !strings.Contains(err.Error(), "is bad") || strings.Count(err.Error(), "\n") > mostErrors {
			w.Fatalf("error %v", err)
		}
		want(w, "did", did, Report{Buried: 2, Forgotten: 1, Channels: 20})
		want(w, "listed", w.listed(), []string{"dead"})
		want(w, "cured", w.round(w.janitor(nil).ServersRound), Report{Forgotten: 1, Channels: 11, Clients: 2})
	})
}

func TestTwoJanitorsAtOnce(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.server("dead", 40, 40)
		w.server("live", 40, 0)
		janitors := []*Janitor{w.janitor(nil), w.janitor(nil)}
		for _, j := range janitors {
			w.round(j.ServersRound)
		}
		w.loseLease("dead")
		clients := 0
		for range 3 {
			var mu sync.Mutex
			var wg sync.WaitGroup
			for _, j := range janitors {
				wg.Go(func() {
					did, err := j.ServersRound(w.Context())
					if err != nil {
						w.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					clients += did.Clients
				})
				wg.Go(func() {
					if _, err := j.QueuesRound(w.Context()); err != nil {
						w.Error(err)
					}
				})
			}
			wg.Wait()
		}
		want(w, "clients released", clients, 40)
		want(w, "listed", w.listed(), []string{"live"})
		for i := range 40 {
			want(w, "channel", w.channelServers(fmt.Sprintf("c%d", i)), []string{"live"})
			want(w, "user", w.bindings(fmt.Sprintf("u%d", i)), []string{fmt.Sprintf("dead-%d@", i)})
		}
	})
}

func TestServerThatAnswersIsSparedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := memoryWorld(t)
		w.server("a", 0, 0)
		var asked []string
		j := w.janitor(func(o *Options) {
			o.Probe = func(_ context.Context, host, server string) bool {
				asked = append(asked, server+" at "+host)
				return true
			}
		})
		w.round(j.ServersRound)
		w.loseLease("a")
		want(w, "first look", w.round(j.ServersRound), Report{Suspected: 1})
		<-time.After(59 * time.Second)
		want(w, "after 59 s", w.round(j.ServersRound), Report{})
		want(w, "asked", asked, []string{"a at a:1"})
		<-time.After(time.Second)
		want(w, "after 60 s", w.round(j.ServersRound), Report{Buried: 1, Forgotten: 1})
	})
}
