//go:build long

package e2e

import (
	"context"
	"fmt"
	"testing"

	"switchboard/internal/cond"
)

// An event is the report of a client, in JavaScript or Go.
type event struct {
	Client  string
	Event   string // ready, message, duplicate, closed, closing or left; any other is a failure
	Conn    int    // number of the client's connection, from 1
	Server  string // of a ready event: the server id
	Channel string // "" for the client queue
	ID      int64
	Stream  string // of a message: the fields of its payload
	N       int
	Pad     int // bytes
	Field   string
	Detail  string
}

// A delivery is one message to one client.
type delivery struct {
	client, stream string
	n              int
}

// A streamKey names a stream or a queue of one client.
type streamKey struct{ client, name string }

// A ledger compares the accepted messages with the received messages.
type ledger struct {
	cond.Cond // guards the fields below
	expected  map[streamKey]bool
	pushes    int                // accepted
	accepted  map[delivery]int64 // ids from the responses to the pushes
	arrived   map[delivery]int64
	lastN     map[streamKey]int   // last N, by stream
	lastID    map[streamKey]int64 // by queue
	server    map[string]string   // server id, by connected client
	repeated  int                 // messages received twice, on two connections
	left      int
	failures  []string
}

func newLedger(streams []stream) *ledger {
	l := &ledger{
		expected: map[streamKey]bool{}, accepted: map[delivery]int64{}, arrived: map[delivery]int64{},
		lastN: map[streamKey]int{}, lastID: map[streamKey]int64{}, server: map[string]string{},
	}
	for _, s := range streams {
		for _, client := range s.to {
			l.expected[streamKey{client, s.name}] = true
		}
	}
	return l
}

// countAtLocked returns the number of clients that are connected to a server.
func (l *ledger) countAtLocked(server string) (n int) {
	for _, at := range l.server {
		if at == server {
			n++
		}
	}
	return n
}

// accept records the ids, by client, of message n of a stream.
func (l *ledger) accept(stream string, n int, ids map[string]int64) {
	l.Change(func() {
		l.pushes++
		for client, id := range ids {
			l.accepted[delivery{client, stream, n}] = id
		}
	})
}

func (l *ledger) fail(format string, args ...any) {
	l.Change(func() { l.failLocked(format, args...) })
}

func (l *ledger) failLocked(format string, args ...any) {
	l.failures = append(l.failures, fmt.Sprintf(format, args...))
}

// record records an event of a client.
func (l *ledger) record(e event) {
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
			// Only the client queue repeats messages, and only those that were not acknowledged
			// when the connection ended.
			if l.repeated++; e.Channel != "" || e.Conn == 1 {
				l.failLocked("%s received a message twice: %+v", e.Client, e)
			}
		default:
			l.failLocked("%s: %+v", e.Client, e)
		}
	})
}

// messageLocked checks that a message is the next of its stream and that ids increase in its queue.
func (l *ledger) messageLocked(e event) {
	stream, queue := streamKey{e.Client, e.Stream}, streamKey{e.Client, e.Channel}
	switch {
	case !l.expected[stream]:
		l.failLocked("%s received a message of another client: %+v", e.Client, e)
	case e.N != l.lastN[stream]+1:
		l.failLocked("%s received message %d of %s after %d", e.Client, e.N, e.Stream, l.lastN[stream])
	case e.ID <= l.lastID[queue]:
		l.failLocked("%s received id %d of queue %q after %d", e.Client, e.ID, e.Channel, l.lastID[queue])
	case e.Pad != padding(e.N):
		l.failLocked("%s received %d bytes of padding in message %d of %s, want %d", e.Client, e.Pad, e.N, e.Stream, padding(e.N))
	}
	l.lastN[stream], l.lastID[queue] = e.N, e.ID
	l.arrived[delivery{e.Client, e.Stream, e.N}] = e.ID
}

// waitFor waits until done returns true. done may read the ledger. A failure of any client ends the
// test at once.
func (l *ledger) waitFor(ctx context.Context, t *testing.T, what string, done func() bool) {
	t.Helper()
	err := l.Await(ctx, func() bool { return len(l.failures) > 0 || done() })
	l.Lock()
	defer l.Unlock()
	if err == nil && len(l.failures) == 0 {
		return
	}
	for _, problem := range l.failures[:min(len(l.failures), 10)] {
		t.Error(problem)
	}
	t.Fatalf("%s: %v; %d of %d messages arrived, %d clients are connected", what, err, len(l.arrived), len(l.accepted), len(l.server))
}

// compareIDs checks that the received ids are the accepted ids.
func (l *ledger) compareIDs(t *testing.T) {
	t.Helper()
	l.Lock()
	defer l.Unlock()
	for d, id := range l.accepted {
		if l.arrived[d] != id {
			t.Errorf("%s of %s: accepted with id %d, received with id %d", d.stream, d.client, id, l.arrived[d])
		}
	}
	if len(l.arrived) != len(l.accepted) {
		t.Errorf("%d messages were received, %d were accepted", len(l.arrived), len(l.accepted))
	}
}
