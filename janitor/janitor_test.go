package janitor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"switchboard/registry"
)

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memoryEnv(t)
		e.addServer("dead", 2, 1)
		e.push("c0", 3)
		var log bytes.Buffer
		j := e.janitor(func(o *Options) { o.Logger, o.MaxCount, o.QueuesEvery = zerolog.New(&log), 1, time.Second })
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- j.Run(ctx) }()

		<-time.After(4 * time.Second) // at least one round with the server alive
		synctest.Wait()
		e.expireLease("dead")
		<-time.After(7 * time.Second) // at least two rounds
		synctest.Wait()
		equal(e, "listed", len(e.listed()), 0)
		cancel()
		e.ok(<-result)

		equal(e, "log", strings.Split(strings.TrimSpace(log.String()), "\n"), []string{
			`{"level":"info","round":"queues","trimmed":2,"message":"janitor: cleaned up"}`,
			`{"level":"info","round":"servers","suspected":1,"message":"janitor: cleaned up"}`,
			`{"level":"info","round":"servers","declared_dead":1,"forgotten":1,"channels":2,"clients":1,"message":"janitor: cleaned up"}`,
		})
	})
}

// failsTwice is a registry whose first two calls of Listed fail.
type failsTwice struct {
	Registry
	calls *atomic.Int64
}

func (f failsTwice) Listed(ctx context.Context) ([]string, error) {
	if f.calls.Add(1) < 3 {
		return nil, errors.New("store unavailable")
	}
	return f.Registry.Listed(ctx)
}

func TestRunTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memoryEnv(t)
		var log bytes.Buffer
		var calls atomic.Int64
		j := e.janitor(func(o *Options) {
			o.Registry, o.Logger, o.QueuesEvery = failsTwice{e.registry, &calls}, zerolog.New(zerolog.SyncWriter(&log)), time.Hour
		})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		e.ok(j.Run(ctx))
		equal(e, "failures in the log", strings.Count(log.String(), "store unavailable"), 2)
		if n := calls.Load(); n < 8 {
			t.Fatalf("%d rounds in 30 s", n)
		}
	})
}

func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memoryEnv(t)
		e.addServer("dead", 2, 1)
		e.addServer("live", 0, 0)
		e.push("c0", 3)
		once := func() Report { return e.round(e.janitor(func(o *Options) { o.MaxCount = 1 }).Once) }

		start := time.Now()
		equal(e, "no server is suspected", once(), Report{Trimmed: 2})
		equal(e, "time", time.Since(start), time.Duration(0))

		e.expireLease("dead")
		equal(e, "a server without a lease", once(), Report{Suspected: 1, DeclaredDead: 1, Forgotten: 1, Channels: 2, Clients: 1})
		equal(e, "time", time.Since(start), 3*time.Second)
		equal(e, "listed", e.listed(), []string{"live"})

		e.expireLease("live")
		go func() { // renews the lease
			<-time.After(2 * time.Second)
			e.ok(e.registry.Beat(t.Context(), registry.Server{ID: "live"}))
		}()
		equal(e, "a server that renews its lease in time", once(), Report{Suspected: 1})
	})
}

func TestHealthz(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   bool
	}{
		"same server":    {200, `{"server":"b1-aa","version":"1"}`, true},
		"another server": {200, `{"server":"b1-bb"}`, false},
		"draining":       {503, `{"server":"b1-aa"}`, false},
		"no JSON":        {200, `ok`, false},
		"too large":      {200, `{"pad":"` + strings.Repeat("x", 1<<17) + `","server":"b1-aa"}`, false},
		"redirect":       {307, `{"server":"b1-aa"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/healthz" {
					fmt.Fprint(w, `{"server":"b1-aa"}`)
					return
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			}))
			defer s.Close()
			if got := Healthz(t.Context(), strings.TrimPrefix(s.URL, "http://"), "b1-aa"); got != c.want {
				t.Errorf("alive: %v", got)
			}
		})
	}
	if Healthz(t.Context(), "127.0.0.1:1", "b1-aa") || Healthz(t.Context(), "not a host", "b1-aa") {
		t.Error("an address without a server is alive")
	}
}

func TestHealthzTimeout(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	if Healthz(t.Context(), strings.TrimPrefix(s.URL, "http://"), "b1-aa") {
		t.Error("a process that does not answer is alive")
	}
}

func TestMetrics(t *testing.T) {
	e := memoryEnv(t)
	e.addServer("dead", 2, 3)
	e.expireLease("dead")
	for _, c := range []struct {
		dryRun bool
		want   []float64
	}{{true, []float64{2, 0, 0, 0}}, {false, []float64{2, 1, 2, 3}}} {
		metrics := prometheus.NewRegistry()
		j := e.janitor(func(o *Options) { o.Registerer, o.DryRun = metrics, c.dryRun })
		e.round(j.ServersRound)
		e.round(j.ServersRound)
		families, err := metrics.Gather()
		e.ok(err)
		values := map[string]float64{}
		for _, f := range families {
			for _, m := range f.Metric {
				values[strings.TrimPrefix(f.GetName(), "switchboard_janitor_")] += m.GetCounter().GetValue()
			}
		}

		equal(e, "metrics", []float64{
			values["rounds_total"], values["servers_buried_total"], values["channels_released_total"], values["clients_released_total"],
		}, c.want)
		if _, err := New(Options{Registry: e.registry, Queue: e.queue, Registerer: metrics}); err == nil {
			t.Error("metrics were registered twice without an error")
		}
	}
}

func TestBadOptions(t *testing.T) {
	e := memoryEnv(t)
	for name, opts := range map[string]Options{
		"no stores":     {},
		"negative time": {Registry: e.registry, Queue: e.queue, ServersEvery: -1},
		"negative size": {Registry: e.registry, Queue: e.queue, Chunk: -1},
	} {
		if _, err := New(opts); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
