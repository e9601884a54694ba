package janitor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"switchboard/registry"
)

func TestRunBuriesTrimsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := memoryWorld(t)
		w.server("dead", 2, 1)
		w.push("c0", 3)
		var log bytes.Buffer
		j := w.janitor(func(o *Options) { o.Logger, o.MaxCount, o.QueuesEvery = zerolog.New(&log), 1, time.Second })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- j.Run(ctx) }()

		<-time.After(4 * time.Second) // one round at least, with the server alive
		synctest.Wait()
		w.loseLease("dead")
		<-time.After(7 * time.Second) // two rounds at least
		synctest.Wait()
		want(w, "listed", len(w.listed()), 0)
		cancel()
		w.ok(<-ended)

		want(w, "log", strings.Split(strings.TrimSpace(log.String()), "\n"), []string{
			`{"level":"info","round":"queues","trimmed":2,"message":"janitor: cleaned up"}`,
			`{"level":"info","round":"servers","suspected":1,"message":"janitor: cleaned up"}`,
			`{"level":"info","round":"servers","buried":1,"forgotten":1,"channels":2,"clients":1,"message":"janitor: cleaned up"}`,
		})
	})
}

// away is a registry that cannot be reached for the first calls.
type away struct {
	Registry
	calls *int
}

func (a away) Listed(ctx context.Context) ([]string, error) {
	if *a.calls++; *a.calls < 3 {
		return nil, errors.New("store away")
	}
	return a.Registry.Listed(ctx)
}

func TestRunTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := memoryWorld(t)
		var log bytes.Buffer
		var calls int
		j := w.janitor(func(o *Options) {
			o.Registry, o.Logger, o.QueuesEvery = away{w.registry, &calls}, zerolog.New(zerolog.SyncWriter(&log)), time.Hour
		})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		w.ok(j.Run(ctx))
		want(w, "failures in the log", strings.Count(log.String(), "store away"), 2)
		if calls < 8 {
			t.Fatalf("%d rounds in 30 s", calls)
		}
	})
}

func TestOnceLooksTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := memoryWorld(t)
		w.server("dead", 2, 1)
		w.server("live", 0, 0)
		w.push("c0", 3)
		once := func() Report { return w.round(w.janitor(func(o *Options) { o.MaxCount = 1 }).Once) }

		start := time.Now()
		want(w, "nobody is suspected", once(), Report{Trimmed: 2})
		want(w, "time", time.Since(start), time.Duration(0))

		w.loseLease("dead")
		want(w, "a server without a lease", once(), Report{Suspected: 1, Buried: 1, Forgotten: 1, Channels: 2, Clients: 1})
		want(w, "time", time.Since(start), 3*time.Second)
		want(w, "listed", w.listed(), []string{"live"})

		w.loseLease("live")
		go func() { // its next beat
			<-time.After(2 * time.Second)
			w.ok(w.registry.Beat(t.Context(), registry.Server{ID: "live"}))
		}()
		want(w, "a server that beats in time", once(), Report{Suspected: 1})
	})
}

func TestHealthz(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   bool
	}{
		"itself":             {200, `{"server":"b1-aa","version":"1"}`, true},
		"a successor":        {200, `{"server":"b1-bb"}`, false},
		"draining":           {503, `{"server":"b1-aa"}`, false},
		"something else":     {200, `ok`, false},
		"endless":            {200, `{"pad":"` + strings.Repeat("x", 1<<17) + `","server":"b1-aa"}`, false},
		"elsewhere, by 307s": {307, `{"server":"b1-aa"}`, false},
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
		t.Error("nobody is alive")
	}
}

func TestHealthzGivesUp(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	if Healthz(t.Context(), strings.TrimPrefix(s.URL, "http://"), "b1-aa") {
		t.Error("a process that hangs is called alive")
	}
}

func TestMetrics(t *testing.T) {
	w := memoryWorld(t)
	w.server("dead", 2, 3)
	w.loseLease("dead")
	for _, dry := range []bool{true, false} {
		metrics := prometheus.NewRegistry()
		j := w.janitor(func(o *Options) { o.Registerer, o.DryRun = metrics, dry })
		w.round(j.ServersRound)
		w.round(j.ServersRound)
		families, err := metrics.Gather()
		w.ok(err)
		values := map[string]float64{}
		for _, f := range families {
			for _, m := range f.Metric {
				values[strings.TrimPrefix(f.GetName(), "switchboard_janitor_")] += m.GetCounter().GetValue()
			}
		}
		done := map[bool][]float64{true: {2, 0, 0, 0}, false: {2, 1, 2, 3}}[dry]
		want(w, "metrics", []float64{
			values["rounds_total"], values["servers_buried_total"], values["channels_released_total"], values["clients_released_total"],
		}, done)
		if _, err := New(Options{Registry: w.registry, Queue: w.queue, Registerer: metrics}); err == nil {
			t.Error("the same metrics are registered twice")
		}
	}
}

func TestNewRefusesOptions(t *testing.T) {
	w := memoryWorld(t)
	for name, opts := range map[string]Options{
		"no stores":     {},
		"negative time": {Registry: w.registry, Queue: w.queue, ServersEvery: -1},
		"negative size": {Registry: w.registry, Queue: w.queue, Chunk: -1},
	} {
		if _, err := New(opts); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
