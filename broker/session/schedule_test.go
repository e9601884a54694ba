package session_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/broker/session"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// TestIdleLoopSleeps checks that an idle loop runs only at the connect timeout and when a ping is
// due. At the connect timeout it does not check a session that has connected.
func TestIdleLoopSleeps(t *testing.T) {
	pingEvery(t, 25*time.Second)
	h := newHarness(t, session.Options{Timing: session.Timing{Slow: time.Hour, Refresh: time.Hour}})
	runs, ranAt := 0, []int(nil)
	h.loop.Attach(func(run func()) {
		runs++
		run()
	})
	h.Tick() // the tick after the connect
	checks, checkedAt := h.sock.checks, []int(nil)
	for tick := range 24 {
		before := runs
		if h.Tick(); runs > before {
			ranAt = append(ranAt, 2+tick)
		}
		if h.sock.checks > checks {
			checks, checkedAt = h.sock.checks, append(checkedAt, 2+tick)
		}
	}
	if fmt.Sprint(ranAt) != "[10 25]" || h.sock.pings != 1 {
		t.Errorf("the loop ran at the ticks %v, and there were %d pings; want 10 and 25, and one", ranAt, h.sock.pings)
	}
	if fmt.Sprint(checkedAt) != "[25]" {
		t.Errorf("the session was checked at the ticks %v, want 25", checkedAt)
	}
}

// renewalCounter is a queue that counts the renewals of bindings.
type renewalCounter struct {
	Queue
	mu    sync.Mutex
	calls int
	count map[string]int
}

func (q *renewalCounter) RefreshClients(ctx context.Context, server string, list []queue.HeldClient) []error {
	q.mu.Lock()
	q.calls++
	for _, h := range list {
		q.count[h.Client]++
	}
	q.mu.Unlock()
	return q.Queue.RefreshClients(ctx, server, list)
}

// take adds the renewals since the last call to all, and returns their number.
func (q *renewalCounter) take(all map[string]int) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for client, k := range q.count {
		all[client] += k
		n += k
	}
	clear(q.count)
	return n
}

// TestRenewals checks that bindings are renewed in groups, each binding once per interval.
func TestRenewals(t *testing.T) {
	const clients, interval = 300, 100
	counting := &renewalCounter{count: make(map[string]int)}
	h := newHarnessOn(t, session.Options{Timing: session.Timing{Refresh: interval * time.Second}}, func(q Queue) Queue {
		counting.Queue = q
		return counting
	})
	h.onLoop(func() {
		for i := range clients - 1 {
			h.Accept(h.loop, newSocket(), connect(fmt.Sprint("c", i), ""))
		}
	})
	h.settle()
	all := make(map[string]int)
	for range 10 { // until the groups have their final size
		h.tick(1)
	}
	counting.take(all)
	clear(all)
	counting.calls = 0
	groups, most := 0, 0
	for range 3 * interval {
		h.tick(1)
		if n := counting.take(all); n > 0 {
			groups, most = groups+1, max(most, n)
		}
	}
	if groups < 10 || groups > 20 || most > 80 || counting.calls != groups {
		t.Errorf("%d groups, one of %d, in %d calls of the store; want one for each", groups, most, counting.calls)
	}
	for client, n := range all {
		if n < 2 || n > 4 {
			t.Errorf("%s was renewed %d times in three intervals", client, n)
		}
	}
	if len(all) != clients {
		t.Errorf("%d of %d were renewed", len(all), clients)
	}
}

// TestExpiryAfterSuspension checks that a process that was suspended checks all tokens at once.
func TestExpiryAfterSuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pingEvery(t, time.Minute)
		h := newHarness(t, session.Options{
			Access: session.Access{Verify: func(string) (session.Identity, error) {
				return session.Identity{User: "ann", Expires: time.Now().Add(40 * time.Second)}, nil
			}},
		})
		for range 30 {
			<-time.After(time.Second)
			h.tick(1)
		}
		h.wantClosed("")
		<-time.After(20 * time.Second)
		h.tick(1)
		h.wantClosed(wire.CloseExpired)
		<-time.After(10 * time.Second) // the pool's idle workers end
	})
}
