package e2e

import (
	"context"
	"fmt"
	"testing"

	"switchboard/internal/cond"
)

// event is what a client saw, the same from JavaScript and from Go.
type event struct {
	Client  string
	Event   string // ready, message, duplicate, closed, closing, left; anything else is a complaint
	Conn    int    // which of the client's connections, from 1
	Server  string // ready: the server's id
	Channel string // "" for the client queue
	ID      int64
	Stream  string // message: what the payload says
	N       int
	Pad     int // bytes
	Detail  string
}

// delivery is one message at one addressee.
type delivery struct {
	client, stream string
	n              int
}

// place is a client's position in a stream or a queue.
type place struct{ client, name string }

// ledger holds what was accepted against what arrived.
type ledger struct {
	cond.Cond // guards the fields below
	expected  map[place]bool
	pushes    int                // accepted
	accepted  map[delivery]int64 // ids, as the answers to the pushes had them
	arrived   map[delivery]int64
	reached   map[place]int     // last n, by stream
	lastID    map[place]int64   // by queue
	server    map[string]string // by client: where it is connected
	resumed   int               // messages that came twice, on two connections
	left      int
	problems  []string
}

func newLedger(streams []stream) *ledger {
	l := &ledger{
		expected: map[place]bool{}, accepted: map[delivery]int64{}, arrived: map[delivery]int64{},
		reached: map[place]int{}, lastID: map[place]int64{}, server: map[string]string{},
	}
	for _, s := range streams {
		for _, client := range s.to {
			l.expected[place{client, s.name}] = true
		}
	}
	return l
}

// at is how many clients are connected to a server, to be called in until.
func (l *ledger) at(server string) (n int) {
	for _, at := range l.server {
		if at == server {
			n++
		}
	}
	return n
}

// accept notes with which ids, by client, message n of a stream was accepted.
func (l *ledger) accept(stream string, n int, ids map[string]int64) {
	l.Change(func() {
		l.pushes++
		for client, id := range ids {
			l.accepted[delivery{client, stream, n}] = id
		}
	})
}

func (l *ledger) complain(format string, args ...any) {
	l.Change(func() { l.complainLocked(format, args...) })
}

func (l *ledger) complainLocked(format string, args ...any) {
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

// see enters what a client saw.
func (l *ledger) see(e event) {
	l.Change(func() {
		switch e.Event {
		case "ready":
			l.server[e.Client] = e.Server
		case "closed":
			delete(l.server, e.Client)
		case "closing":
		case "left":
			l.left++
		case "message":
			l.messageLocked(e)
		case "duplicate":
			// Only the client queue repeats itself, and only what had no acknowledgement when
			// the connection ended.
			if l.resumed++; e.Channel != "" || e.Conn == 1 {
				l.complainLocked("%s got the same message twice: %+v", e.Client, e)
			}
		default:
			l.complainLocked("%s: %+v", e.Client, e)
		}
	})
}

// messageLocked demands the very next message of the stream, behind all ids of the queue.
func (l *ledger) messageLocked(e event) {
	stream, queue := place{e.Client, e.Stream}, place{e.Client, e.Channel}
	switch {
	case !l.expected[stream]:
		l.complainLocked("%s got what is not for it: %+v", e.Client, e)
	case e.N != l.reached[stream]+1:
		l.complainLocked("%s got message %d of %s behind %d", e.Client, e.N, e.Stream, l.reached[stream])
	case e.ID <= l.lastID[queue]:
		l.complainLocked("%s got id %d of queue %q behind %d", e.Client, e.ID, e.Channel, l.lastID[queue])
	case e.Pad != padding(e.N):
		l.complainLocked("%s got %d bytes of padding in message %d of %s, want %d", e.Client, e.Pad, e.N, e.Stream, padding(e.N))
	}
	l.reached[stream], l.lastID[queue] = e.N, e.ID
	l.arrived[delivery{e.Client, e.Stream, e.N}] = e.ID
}

// until waits for done; a complaint of anybody fails the test at once.
func (l *ledger) until(ctx context.Context, t *testing.T, what string, done func() bool) {
	t.Helper()
	err := l.Await(ctx, func() bool { return len(l.problems) > 0 || done() })
	l.Lock()
	defer l.Unlock()
	if err == nil && len(l.problems) == 0 {
		return
	}
	for _, problem := range l.problems[:min(len(l.problems), 10)] {
		t.Error(problem)
	}
	t.Fatalf("%s: %v; %d of %d messages arrived, %d clients are up", what, err, len(l.arrived), len(l.accepted), len(l.server))
}

// settle compares ids: what arrived is what was accepted.
func (l *ledger) settle(t *testing.T) {
	t.Helper()
	l.Lock()
	defer l.Unlock()
	for d, id := range l.accepted {
		if l.arrived[d] != id {
			t.Errorf("%s of %s: the push was answered with id %d, it arrived with %d", d.stream, d.client, id, l.arrived[d])
		}
	}
	if len(l.arrived) != len(l.accepted) {
		t.Errorf("%d messages arrived, %d were accepted", len(l.arrived), len(l.accepted))
	}
}
