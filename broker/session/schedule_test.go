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

// TestNothingWakesALoopAtRest but what is due: the end of the time for a connect, and the ping. At the former nobody
// is looked at who has connected.
func TestNothingWakesALoopAtRest(t *testing.T) {
	pingEvery(t, 25*time.Second)
	d := newDesk(t, session.Options{Timing: session.Timing{Backlog: time.Hour, Renewal: time.Hour}})
	var runs, at []int
	d.loop.Attach(func(run func()) {
		runs = append(runs, 1)
		run()
	})
	d.Tick() // the one behind the connect
	looks, looked := d.sock.looks, []int(nil)
	for tick := range 24 {
		n := len(runs)
		if d.Tick(); len(runs) > n {
			at = append(at, 2+tick)
		}
		if d.sock.looks > looks {
			looks, looked = d.sock.looks, append(looked, 2+tick)
		}
	}
	if fmt.Sprint(at) != "[10 25]" || d.sock.pings != 1 {
		t.Errorf("the loop ran at the ticks %v, and there were %d pings; want 10 and 25, and one", at, d.sock.pings)
	}
	if fmt.Sprint(looked) != "[25]" {
		t.Errorf("the session was looked at at the ticks %v, want 25", looked)
	}
}

// refreshes is a queue that counts the renewals of bindings.
type refreshes struct {
	queue.Queue
	mu    sync.Mutex
	calls int
	count map[string]int
}

func (q *refreshes) RefreshClients(ctx context.Context, server string, list []queue.Held) []error {
	q.mu.Lock()
	q.calls++
	for _, h := range list {
		q.count[h.Client]++
	}
	q.mu.Unlock()
	return q.Queue.RefreshClients(ctx, server, list)
}

// take is how many there were since the last call.
func (q *refreshes) take(all map[string]int) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for client, k := range q.count {
		all[client] += k
		n += k
	}
	clear(q.count)
	return n
}

// TestRenewals go in groups, and everybody has his turn once in an interval.
func TestRenewals(t *testing.T) {
	const clients, interval = 300, 100
	counting := &refreshes{count: make(map[string]int)}
	d := newDeskOn(t, session.Options{Timing: session.Timing{Renewal: interval * time.Second}}, func(q queue.Queue) queue.Queue {
		counting.Queue = q
		return counting
	})
	d.do(func() {
		for i := range clients - 1 {
			d.Accept(d.loop, newSocket(), connect(fmt.Sprint("c", i), ""))
		}
	})
	d.settle()
	all := make(map[string]int)
	for range 10 { // the groups find their size
		d.tick(1)
	}
	counting.take(all)
	clear(all)
	counting.calls = 0
	groups, most := 0, 0
	for range 3 * interval {
		d.tick(1)
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

// TestExpiryAfterAStop: a process that did not run for a while looks at once whose token ran out meanwhile.
func TestExpiryAfterAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pingEvery(t, time.Minute)
		d := newDesk(t, session.Options{

			Access: session.Access{Verify: func(string) (session.Identity, error) {
				return session.Identity{User: "ann", Expires: time.Now().Add(40 * time.Second)}, nil
			}},
		})
		for range 30 {
			<-time.After(time.Second)
			d.tick(1)
		}
		d.want("")
		<-time.After(20 * time.Second)
		d.tick(1)
		d.want(wire.CloseExpired)
		<-time.After(10 * time.Second) // the pool's workers go home
	})
}
