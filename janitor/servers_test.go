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

// equal checks that two values are deeply equal.
func equal[V any](e *env, what string, got, want V) {
	e.Helper()
	if !reflect.DeepEqual(got, want) {
		e.Fatalf("%s: %+v, want %+v", what, got, want)
	}
}

func TestCleanUpAfterDeadServer(t *testing.T) {
	eachStore(t, func(e *env) {
		e.addServer("dead", 5, 7)
		e.addServer("live", 3, 0)
		e.addClient("dead", "anonymous", "")
		e.addClient("dead", "moved", "u0")
		e.addClient("live", "moved", "u0")
		e.ok(e.registry.HoldClients(e.Context(), "dead", []string{"unbound"})) // held, but not bound
		j := e.janitor(func(o *Options) { o.Chunk = 2 })
		equal(e, "all servers alive", e.round(j.ServersRound), Report{})

		e.expireLease("dead")
		equal(e, "first round", e.round(j.ServersRound), Report{Suspected: 1})
		equal(e, "second round", e.round(j.ServersRound), Report{DeclaredDead: 1, Forgotten: 1, Channels: 5, Clients: 8})
		equal(e, "third round", e.round(j.ServersRound), Report{})

		equal(e, "listed", e.listed(), []string{"live"})
		equal(e, "c0", e.serversOf("c0"), []string{"live"})
		equal(e, "c4", len(e.serversOf("c4")), 0)
		names, _, err := e.registry.Channels(e.Context(), "", "", 100)
		e.ok(err)
		slices.Sort(names)
		equal(e, "ch_list", names, []string{"c0", "c1", "c2"})
		equal(e, "dead-3", e.serverOf("dead-3"), "")
		equal(e, "anonymous", e.serverOf("anonymous"), "")
		equal(e, "moved", e.serverOf("moved"), "live")
		equal(e, "u0", e.bindings("u0"), []string{"dead-0@", "moved@live"})
		equal(e, "u6", e.bindings("u6"), []string{"dead-6@"})
		if err := e.registry.Beat(e.Context(), registry.Server{ID: "dead"}); !errors.Is(err, registry.ErrDead) {
			e.Fatalf("beat of the dead server: %v", err)
		}
	})
}

func TestLeaseRenewedInTime(t *testing.T) {
	eachStore(t, func(e *env) {
		e.addServer("a", 1, 1)
		j := e.janitor(nil)
		e.round(j.ServersRound)
		e.expireLease("a")
		equal(e, "first round", e.round(j.ServersRound), Report{Suspected: 1})
		e.ok(e.registry.Beat(e.Context(), registry.Server{ID: "a", Host: "a:1"}))
		equal(e, "renewed before the second round", e.round(j.ServersRound), Report{})
		e.expireLease("a")
		equal(e, "suspected again", e.round(j.ServersRound), Report{Suspected: 1})

		// The server renews its lease after the janitor has read the lease.
		j.opts.Probe = func(ctx context.Context, _, _ string) bool {
			e.ok(e.registry.Beat(ctx, registry.Server{ID: "a", Host: "a:1"}))
			return false
		}
		equal(e, "renewed during the second round", e.round(j.ServersRound), Report{})
		equal(e, "servers of the channel", e.serversOf("c0"), []string{"a"})
		equal(e, "server of the client", e.serverOf("a-0"), "a")
	})
}

func TestServerLeaves(t *testing.T) {
	e := memoryEnv(t)
	e.addServer("a", 0, 0)
	j := e.janitor(nil)
	e.round(j.ServersRound)
	e.expireLease("a")
	e.round(j.ServersRound)
	e.ok(e.registry.Leave(t.Context(), "a"))
	equal(e, "after the server left", e.round(j.ServersRound), Report{})
	equal(e, "suspects and hosts", len(j.suspects)+len(j.hosts), 0)
}

func TestDryRunChangesNothing(t *testing.T) {
	eachStore(t, func(e *env) {
		e.addServer("dead", 3, 4)
		e.addClient("dead", "moved", "u0")
		e.addServer("live", 0, 0)
		e.addClient("live", "moved", "u0")
		j := e.janitor(func(o *Options) { o.DryRun = true })
		e.expireLease("dead")
		e.round(j.ServersRound)
		want := Report{DeclaredDead: 1, Forgotten: 1, Channels: 3, Clients: 4, DryRun: true}
		equal(e, "dry run", e.round(j.ServersRound), want)
		equal(e, "second dry run", e.round(j.ServersRound), want)

		equal(e, "listed", e.listed(), []string{"dead", "live"})
		equal(e, "c0", e.serversOf("c0"), []string{"dead"})
		equal(e, "client", e.serverOf("dead-0"), "dead")
		equal(e, "u1", e.bindings("u1"), []string{"dead-1@dead"})
		e.ok(e.registry.Beat(e.Context(), registry.Server{ID: "dead"}))

		// The server is declared dead, but its bindings are not removed.
		e.expireLease("dead")
		_, err := e.registry.DeclareDead(e.Context(), "dead")
		e.ok(err)
		equal(e, "dry run of the cleanup", e.round(j.ServersRound), Report{Forgotten: 1, Channels: 3, Clients: 4, DryRun: true})
		equal(e, "report", e.round(e.janitor(nil).ServersRound), Report{Forgotten: 1, Channels: 3, Clients: 4})
	})
}

// failing is a registry in which UnbindChannel and DropClient may fail.
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

func succeed(string) error { return nil }

func TestInterruptedCleanup(t *testing.T) {
	eachStore(t, func(e *env) {
		e.addServer("dead", 10, 10)
		e.expireLease("dead")
		e.round(e.janitor(nil).ServersRound)

		const never = 1000
		e.interrupt(3, never) // while it releases channels
		e.interrupt(never, 4) // while it releases clients

		report := e.round(e.janitor(nil).ServersRound)
		equal(e, "another janitor", report, Report{Forgotten: 1, Channels: report.Channels, Clients: report.Clients})
		if report.Channels > 7 || report.Clients > 6 {
			e.Fatalf("the other janitor released more than the rest: %+v", report)
		}
		equal(e, "listed", len(e.listed()), 0)
		for i := range 10 {
			equal(e, "channel", len(e.serversOf(fmt.Sprintf("c%d", i))), 0)
			equal(e, "user", e.bindings(fmt.Sprintf("u%d", i)), []string{fmt.Sprintf("dead-%d@", i)})
			equal(e, "client", e.serverOf(fmt.Sprintf("dead-%d", i)), "")
		}
	})
}

// interrupt stops a janitor in its second round, after this number of calls of UnbindChannel or of
// DropClient.
func (e *env) interrupt(unbinds, drops int) {
	e.Helper()
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	after := func(n int) func(string) error {
		return func(string) error {
			if n--; n < 0 {
				cancel()
				return errors.New("interrupted")
			}
			return nil
		}
	}
	j := e.janitor(func(o *Options) {
		o.Registry, o.Chunk, o.Parallel = failing{e.registry, after(unbinds), after(drops)}, 2, 1
	})
	_, first := j.ServersRound(ctx)
	_, second := j.ServersRound(ctx)
	if err := errors.Join(first, second); !errors.Is(err, context.Canceled) {
		e.Fatalf("the round was not interrupted: %v", err)
	}
	equal(e, "still listed", e.listed(), []string{"dead"})
}

func TestErrorsDoNotStopCleanup(t *testing.T) {
	eachStore(t, func(e *env) {
		e.addServer("dead", 30, 2)
		e.addServer("dead2", 1, 0)
		e.expireLease("dead")
		e.expireLease("dead2")
		failC1 := func(channel string) error {
			if strings.HasPrefix(channel, "c1") { // c1, c10 to c19
				return fmt.Errorf("%s fails", channel)
			}
			return nil
		}
		j := e.janitor(func(o *Options) {
			o.Registry = failing{e.registry, failC1, succeed}
			o.Chunk = 15 // more than fail, so that no chunk fails completely
		})
		e.round(j.ServersRound)
		report, err := j.ServersRound(e.Context())
		if err == nil || !strings.Contains(err.Error(), "fails") || strings.Count(err.Error(), "\n") > maxErrors {
			e.Fatalf("error %v", err)
		}
		equal(e, "report", report, Report{DeclaredDead: 2, Forgotten: 1, Channels: 20})
		equal(e, "listed", e.listed(), []string{"dead"})
		equal(e, "without errors", e.round(e.janitor(nil).ServersRound), Report{Forgotten: 1, Channels: 11, Clients: 2})
	})
}

func TestTwoJanitorsAtOnce(t *testing.T) {
	eachStore(t, func(e *env) {
		e.addServer("dead", 40, 40)
		e.addServer("live", 40, 0)
		janitors := []*Janitor{e.janitor(nil), e.janitor(nil)}
		for _, j := range janitors {
			e.round(j.ServersRound)
		}
		e.expireLease("dead")
		clients := 0
		for range 3 {
			var mu sync.Mutex
			var wg sync.WaitGroup
			for _, j := range janitors {
				wg.Go(func() {
					report, err := j.ServersRound(e.Context())
					if err != nil {
						e.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					clients += report.Clients
				})
				wg.Go(func() {
					if _, err := j.QueuesRound(e.Context()); err != nil {
						e.Error(err)
					}
				})
			}
			wg.Wait()
		}
		equal(e, "clients released", clients, 40)
		equal(e, "listed", e.listed(), []string{"live"})
		for i := range 40 {
			equal(e, "channel", e.serversOf(fmt.Sprintf("c%d", i)), []string{"live"})
			equal(e, "user", e.bindings(fmt.Sprintf("u%d", i)), []string{fmt.Sprintf("dead-%d@", i)})
		}
	})
}

func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memoryEnv(t)
		e.addServer("a", 0, 0)
		var probes []string
		j := e.janitor(func(o *Options) {
			o.Probe = func(_ context.Context, host, server string) bool {
				probes = append(probes, server+" at "+host)
				return true
			}
		})
		e.round(j.ServersRound)
		e.expireLease("a")
		equal(e, "first round", e.round(j.ServersRound), Report{Suspected: 1})
		<-time.After(59 * time.Second)
		equal(e, "after 59 s", e.round(j.ServersRound), Report{})
		equal(e, "probes", probes, []string{"a at a:1"})
		<-time.After(time.Second)
		equal(e, "after 60 s", e.round(j.ServersRound), Report{DeclaredDead: 1, Forgotten: 1})
	})
}
