//go:build long

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"syscall"
	"testing"

	"switchboard/internal/cond"
	"switchboard/internal/testbed"
)

const (
	seatClients = 1000
	seats       = 100
)

// seatSettings open the group seat/ for claims.
const seatSettings = `SWITCHBOARD_NAMESPACES={"show:*": {subscribe: users, state: users, fields: {"seat/*": {write: claim, max: 100}}}}`

// A statePlan is the plan of a client in js/state.js.
type statePlan struct {
	Role    string   `json:"role"`
	Client  string   `json:"client"`
	User    string   `json:"user"`
	URLs    []string `json:"urls"`
	Channel string   `json:"channel"`
	Max     int      `json:"max"`   // of the group
	Drops   bool     `json:"drops"` // the connection with the answer to the first claim
	Rounds  int      `json:"rounds,omitempty"`
}

// seatLedger collects what the clients report.
type seatLedger struct {
	cond.Cond // guards the fields below
	server    map[string]string
	holds     map[string]event // by client
	full      map[string]bool  // clients
	final     map[string]string
	repeated  int // holds that were stored before the connection was lost
	conflicts int
	lost      int // connections
	left      int
	failures  []string
}

func (l *seatLedger) fail(format string, args ...any) {
	l.Change(func() { l.failures = append(l.failures, fmt.Sprintf(format, args...)) })
}

func (l *seatLedger) record(e event) {
	l.Change(func() {
		switch e.Event {
		case "ready":
			l.server[e.Client] = e.Server
		case "closed":
			l.lost++
			delete(l.server, e.Client)
		case "repeated hold", "hold":
			if e.Event != "hold" {
				l.repeated++
			}
			if before, twice := l.holds[e.Client]; twice {
				l.failures = append(l.failures, fmt.Sprintf("%s holds %s and %s", e.Client, before.Field, e.Field))
			}
			l.holds[e.Client] = e
		case "conflict":
			l.conflicts++
		case "full":
			if problem := checkFull(e.Detail); problem != "" {
				l.failures = append(l.failures, fmt.Sprintf("%s: %s", e.Client, problem))
			}
			l.full[e.Client] = true
		case "final":
			l.final[e.Client] = e.Detail
		case "closing":
		case "left":
			l.left++
		default:
			l.failures = append(l.failures, fmt.Sprintf("%s: %+v", e.Client, e))
		}
	})
}

// checkFull checks the fields of a refusal as full: it shows 64 of the seats, with their values.
func checkFull(text string) (problem string) {
	var fields map[string]field
	if err := json.Unmarshal([]byte(text), &fields); err != nil || len(fields) != 64 {
		return fmt.Sprintf("full with %d fields (%v)", len(fields), err)
	}
	for name, f := range fields {
		if len(f) != 2 || f.id() == 0 {
			return fmt.Sprintf("full with %s: %s", name, f)
		}
	}
	return ""
}

// waitFor waits until done returns true. A failure of any client ends the test at once.
func (l *seatLedger) waitFor(ctx context.Context, t *testing.T, what string, done func() bool) {
	t.Helper()
	err := l.Await(ctx, func() bool { return len(l.failures) > 0 || done() })
	l.Lock()
	defer l.Unlock()
	for _, problem := range l.failures[:min(len(l.failures), 10)] {
		t.Error(problem)
	}
	if err != nil || len(l.failures) > 0 {
		t.Fatalf("%s: %v; %d clients are connected, %d have a seat, %d were refused as full", what, err, len(l.server), len(l.holds), len(l.full))
	}
}

// TestSeats lets 1,000 clients compete for 100 seats on three brokers. One broker is killed when
// half of the seats are taken. Its clients repeat their claim elsewhere, with the same key.
func TestSeats(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	logf := timedLog(t)
	d := deploy(t, 3, seatSettings)
	l := &seatLedger{server: map[string]string{}, holds: map[string]event{}, full: map[string]bool{}, final: map[string]string{}}
	var inNode, inPage []statePlan
	for i := range seatClients {
		user := userOf(i)
		plan := statePlan{Role: "seat", Client: fmt.Sprint(user, "/tab"), User: user, Channel: "show:1", Max: seats}
		for k := range d.brokers {
			plan.URLs = append(plan.URLs, kind(i%2).url(d.brokers[(i+k)%len(d.brokers)], i))
		}
		if i%25 == 0 { // a browser has at most 255 WebSockets
			inPage = append(inPage, plan)
		} else {
			plan.Drops = i%5 == 1
			inNode = append(inNode, plan)
		}
	}
	exit, leave := context.WithCancel(ctx)
	defer leave()
	_, input := startNode(t, inNode, l)
	startPage(exit, t, inPage, l)
	l.waitFor(ctx, t, "all clients subscribe", func() bool { return len(l.server) == seatClients })
	logf("all clients are subscribed")

	change(ctx, t, d.brokers[0], `{"channel":"show:1","set":{"open":true}}`)
	l.waitFor(ctx, t, "half of the seats are taken", func() bool { return len(l.holds) >= seats/2 })
	end(ctx, t, d.brokers[1], syscall.SIGKILL)
	l.Lock()
	decided := len(l.holds) + len(l.full)
	l.Unlock()
	logf("a broker was killed when %d of %d clients were done", decided, seatClients)
	l.waitFor(ctx, t, "every client has a seat or is refused", func() bool { return len(l.holds)+len(l.full) == seatClients })
	logf("every client has a seat or is refused")
	change(ctx, t, d.brokers[0], `{"channel":"show:1","set":{"closed":true}}`)
	l.waitFor(ctx, t, "every client sees the end", func() bool { return len(l.final) == seatClients })

	if l.lost < seatClients/4 {
		t.Errorf("only %d connections were lost", l.lost)
	}
	logf("%d connections were lost; %d holds (%d of them found by the key), %d refused as full, %d conflicts before that",
		l.lost, len(l.holds), l.repeated, len(l.full), l.conflicts)
	if l.repeated == 0 {
		t.Error("no client got its seat by its key")
	}
	l.checkState(ctx, t, d.brokers[2])
	leave()
	if _, err := io.WriteString(input, "leave\n"); err != nil {
		t.Fatal(err)
	}
	l.waitFor(ctx, t, "all clients leave", func() bool { return l.left == seatClients })
}

// checkState compares the seats in the store, in the log and at the clients.
func (l *seatLedger) checkState(ctx context.Context, t *testing.T, b *testbed.Broker) {
	t.Helper()
	if len(l.holds) != seats {
		t.Errorf("%d clients have a seat, want %d", len(l.holds), seats)
	}
	stored := readState(ctx, t, b, "show:1", "seat/")
	if len(stored) != seats {
		t.Errorf("%d seats are stored, want %d", len(stored), seats)
	}
	for client, hold := range l.holds {
		var owner string
		f := stored[hold.Field]
		if len(f) == 2 {
			_ = json.Unmarshal(f[1], &owner)
		}
		if owner != client || f.id() != hold.ID {
			t.Errorf("%s holds %s with id %d; stored is %s", client, hold.Field, hold.ID, f)
		}
	}
	fold := fieldIDs{}
	for _, m := range readLog(ctx, t, b, "show:1") {
		if fold.apply(m); len(fold.group("seat/")) > seats {
			t.Errorf("%d seats are taken at id %d", len(fold.group("seat/")), m.ID)
		}
	}
	want := fold.group("seat/").list()
	for name, f := range stored {
		if fold[name] != f.id() {
			t.Errorf("%s has id %d, but %d in the log", name, f.id(), fold[name])
		}
	}
	for client, list := range l.final {
		if list != want {
			t.Fatalf("%s has the seats %.300s, want %.300s", client, list, want)
		}
	}
}
