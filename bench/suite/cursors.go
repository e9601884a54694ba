package main

import (
	"context"
	"fmt"
	"time"

	"switchboard/bench/swarm"
)

// cursorInterval is the time between two values of a client: 20 values a second.
const cursorInterval = 50 * time.Millisecond

// cursorLog checks the values of clients that all subscribers of a channel receive. Value n is of
// client n modulo the number of clients.
type cursorLog struct {
	clients  int64
	last     [][]int64 // by subscriber and client: the last value received
	received int64
	fault    error // the first fault
	complete bool  // every value must arrive; otherwise a newer one may replace it
	own      bool  // clients receive their own values, too
	sent     int64 // the last value that each client has sent, without the client's number
}

func newCursorLog(clients int, complete, own bool) *cursorLog {
	l := &cursorLog{clients: int64(clients), complete: complete, own: own}
	for range clients {
		l.last = append(l.last, make([]int64, clients))
	}
	return l
}

// receive records value n at a subscriber.
func (l *cursorLog) receive(subscriber int, n int64) {
	last := &l.last[subscriber][n%l.clients]
	missing := l.complete && *last != 0 && n != *last+l.clients
	if (n <= *last || missing) && l.fault == nil {
		l.fault = fmt.Errorf("subscriber %d received value %d of client %d after value %d", subscriber, n/l.clients, n%l.clients, *last/l.clients)
	}
	*last = n
	l.received++
}

// isDone reports whether all subscribers have the last value of each client.
func (l *cursorLog) isDone() bool {
	for subscriber, row := range l.last {
		for client, n := range row {
			if n/l.clients != l.sent && (l.own || subscriber != client) {
				return false
			}
		}
	}
	return true
}

// measureCursors measures clients of one channel that all send values at the same rate. All of them
// receive the values of the others.
func measureCursors(ctx context.Context, t *trial) error {
	if err := t.connect(ctx); err != nil {
		return err
	}
	if err := t.awaitQuiet(ctx); err != nil {
		return err
	}
	if err := t.sendValues(ctx, warmUp, false); err != nil {
		return err
	}
	earlier, received := t.cursors.sent, t.cursors.received
	spent, err := t.spent(func() error { return t.sendValues(ctx, t.size.time, true) })
	if err != nil {
		return err
	}
	values := (t.cursors.sent - earlier) * t.cursors.clients
	t.record("cpu_us_per_value", micros(spent.total(), values))
	if t.redis != nil {
		t.record("redis_us_per_value", micros(spent.redis, values))
	}
	t.record("deliveries_per_value", float64(t.cursors.received-received)/float64(values))
	for _, q := range []float64{50, 99} {
		t.record(fmt.Sprintf("latency_p%g_us", q), micros(time.Duration(t.histogram.ValueAtPercentile(q)), 1))
	}
	return nil
}

// sendValues sends values of all clients for d, each client at its own moments, and waits until
// all have received the last ones.
func (t *trial) sendValues(ctx context.Context, d time.Duration, measured bool) error {
	l := t.cursors
	rounds := int64(d / cursorInterval)
	start, step := time.Now(), cursorInterval/time.Duration(l.clients)
	for next := range rounds * l.clients {
		for due := start.Add(time.Duration(next) * step); time.Until(due) > 0; {
			if err := t.swarm.Idle(ctx, min(time.Until(due), time.Millisecond)); err != nil {
				return err
			}
		}
		client, at := next%l.clients, int64(0)
		if measured {
			at = swarm.Now()
		}
		if client == 0 {
			l.sent++
			t.show("%d of %d values of each client", next/l.clients, rounds)
		}
		t.value = swarm.AppendPayload(t.value[:0], l.sent*l.clients+client, at)
		if err := t.swarm.Send(int(client), t.value); err != nil {
			return err
		}
	}
	if err := t.swarm.Until(ctx, "receive the last values", l.isDone); err != nil {
		return err
	}
	return l.fault
}
