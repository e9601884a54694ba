package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"switchboard/client"
	"switchboard/client/backend"
)

// TestTop: a reading counts what happens between two samples.
func TestTop(t *testing.T) {
	b := startBroker(t, nil)
	b.connect(t, client.Options{User: "alice", Client: "phone"}, "news")
	l := follow(t, []string{"SWITCHBOARD_URL=" + b.url}, "top", "--json", "--interval=200ms")
	var r reading
	next := func() {
		t.Helper()
		if err := json.Unmarshal([]byte(l.next(t)), &r); err != nil {
			t.Fatal(err)
		}
	}
	seen := func() bool {
		return r.Total.Connections == 1 && r.Total.Channels == 1 && r.Total.Pushes > 0 && r.Total.Deliveries > 0
	}
	for tries := 0; !seen(); tries++ { // a push and its delivery may be in two readings
		if tries == 100 {
			t.Fatalf("%+v", r)
		}
		b.ok(t, "push", "news", "1")
		r = reading{}
		next()
	}
	if len(r.Servers) != 1 || r.Servers[0].Health != healthy || r.Health != healthy || r.Servers[0].Pushes != r.Total.Pushes || r.Total.Users != 1 {
		t.Errorf("%+v", r)
	}
	if code := l.interrupt(t); code != exitOK {
		t.Errorf("%d, %s", code, l.errors())
	}
	out := b.ok(t, "top", "--once", "--interval=100ms")
	if strings.Count(out, "\n") != 2 || !strings.Contains(out, "\ttotal\thealthy\t1\t1\t1\t") {
		t.Errorf("%q", out)
	}
	b.steps(t, []step{
		{line: "top --interval 1ms", code: exitUsage, want: "--interval"},
		{line: "top --sort x", code: exitUsage, want: "--sort"},
	})
}

func TestReading(t *testing.T) {
	at := time.UnixMilli(1795330758000)
	stats := func(name string, started, at, pushes int64) backend.ServerStats {
		return backend.ServerStats{Server: name, StartedAt: started, At: at, Pushes: pushes, Delivered: 2 * pushes, Drain: backend.Duration{P99: float64(pushes)}}
	}
	before := sample{at: at, stats: backend.Stats{Servers: []backend.ServerStats{stats("a", 1, 0, 10), stats("b", 1, 0, 500)}}}
	users := 3
	now := sample{
		at: at.Add(2 * time.Second), users: backend.UserPage{Count: 4, Distinct: &users}, health: backend.HealthReport{Status: problem, Findings: []backend.Finding{{Code: "dead_letters"}, {Code: "server_late", Subject: "b"}, {Code: "server_silent", Subject: "c"}}},
		servers: []backend.Server{{Server: "b", LastActive: 1000}, {Server: "a", LastActive: 7001}, {Server: "c", LastActive: 7000, Connections: 7}},
		stats:   backend.Stats{Servers: []backend.ServerStats{stats("a", 1, 2000, 30), stats("b", 2, 2000, 4)}},
	}
	r := now.read(before, "server")
	if a := r.Servers[0]; a.Server != "a" || a.Pushes != 10 || a.Deliveries != 20 || a.Health != healthy {
		t.Errorf("%+v", a)
	}
	if b := r.Servers[1]; b.Pushes != 0 || b.Health != "server_late" {
		t.Errorf("an instance that was started again: %+v", b)
	}
	if c := r.Servers[2]; c.Health != "server_silent" || c.Connections != 7 {
		t.Errorf("%+v", c)
	}
	if r.Total.Pushes != 10 || r.Total.Connections != 7 || r.Total.Users != 3 || r.Total.Drain.P99 != 30 || r.Health != problem {
		t.Errorf("%+v", r.Total)
	}
	if got := strings.Join(r.Problems, "; "); got != "dead_letters; b server_late; c server_silent" {
		t.Errorf("%s", got)
	}
	if r := now.read(before, "connections"); r.Servers[0].Server != "c" {
		t.Errorf("by connections: %+v", r.Servers)
	}
}
