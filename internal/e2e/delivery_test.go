//go:build long

package e2e

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"switchboard/internal/await"
	"switchboard/internal/keytable"
	"switchboard/internal/testbed"
)

// testTimeout is the timeout of each test. The tests take a fraction of it.
const testTimeout = 2 * time.Minute

func TestDeliveryWhenBrokerIsKilled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	logf := timedLog(t)

	d := deploy(t, 3)
	logf("the brokers are ready")
	plans := planClients(d.brokers)
	streams := newStreams(plans)
	l := newLedger(streams)
	victim := d.brokers[1]
	connectLostClients(ctx, t, victim)
	runner := startClients(ctx, t, plans, l)
	allConnected := func() bool { return len(l.server) == len(plans) }
	l.waitFor(ctx, t, "all clients connect", allConnected)
	if _, err := keytable.Check(ctx, d.redis); err != nil {
		t.Error(err)
	}
	logf("all clients are connected")

	p := newPusher(d.brokers, l)
	pushed := make(chan struct{})
	go func() {
		defer close(pushed)
		p.run(ctx, streams)
	}()
	l.waitFor(ctx, t, "a third of the pushes is accepted", func() bool { return l.pushes >= len(streams)*perStream/3 })
	n := kill(ctx, t, l, victim)
	l.waitFor(ctx, t, "the clients of the killed broker resume elsewhere", allConnected)
	logf("a broker was killed, its %d clients have resumed", n)
	close(p.lastThird)
	<-pushed
	l.waitFor(ctx, t, "every message arrives", func() bool { return len(l.arrived) == perStream*len(l.expected) })
	logf("%d pushes, %d messages; %d attempts failed, %d of them after the message was stored; %d messages arrived twice because they were not acknowledged",
		l.pushes, len(l.arrived), p.failedAttempts.Load(), p.storedAttempts.Load(), l.repeated)

	await.NoError(ctx, t, "the clients' queues hold no acknowledged messages", func() error { return keytable.CheckEmpty(ctx, d.redis, keytable.ClientQueues) })
	checkCleanedUp(ctx, t, d, victim)
	checkReleased(ctx, t, d.redis)
	logf("the janitor has cleaned up after the killed broker")
	runner.stop(ctx, t, len(plans))
	l.waitFor(ctx, t, "no client has failed", func() bool { return true })
	l.compareIDs(t)
	logf("the clients have left")
	for _, broker := range d.brokers {
		if broker != victim {
			end(ctx, t, broker, syscall.SIGTERM)
		}
	}
	logf("the brokers have left")

	await.NoError(ctx, t, "the keys of the servers are removed", func() error { return keytable.CheckEmpty(ctx, d.redis, keytable.OwnedByServers) })
	end(ctx, t, d.janitor, syscall.SIGTERM)
	checkAllOffline(ctx, t, d.redis, plans)
	count, err := keytable.Check(ctx, d.redis)
	if err != nil {
		t.Error(err)
	}
	logf("remaining keys: %v", count)
}

// timedLog returns a t.Logf that adds the seconds since now.
func timedLog(t *testing.T) func(format string, args ...any) {
	began := time.Now()
	return func(format string, args ...any) {
		t.Helper()
		t.Logf("%5.1f s: %s", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
}

// kill kills a broker and waits until its clients have noticed. It returns their number. Pushing
// continues meanwhile.
func kill(ctx context.Context, t *testing.T, l *ledger, victim *testbed.Broker) int {
	t.Helper()
	l.Lock()
	n, pushes := l.countAtLocked(victim.ID), l.pushes
	l.Unlock()
	if n < clientCount/4 {
		t.Errorf("only %d clients are connected to the broker to kill", n)
	}
	end(ctx, t, victim, syscall.SIGKILL)
	l.waitFor(ctx, t, "the clients of the killed broker notice", func() bool { return l.countAtLocked(victim.ID) == 0 })
	l.waitFor(ctx, t, "pushes continue without the killed broker", func() bool { return l.pushes > pushes })
	return n
}

// checkCleanedUp waits until the janitor has removed the keys of a dead server.
func checkCleanedUp(ctx context.Context, t *testing.T, d *deployment, dead *testbed.Broker) {
	t.Helper()
	await.NoError(ctx, t, "the janitor removes the killed broker", func() error {
		listed, err := d.redis.SIsMember(ctx, "s_list", dead.ID).Result()
		if err == nil && listed {
			err = fmt.Errorf("%s is still listed", dead.ID)
		}
		return err
	})
	for key, want := range map[string]int64{"s_": 0, "s_ch_": 0, "s_c_": 0, "s_dead_": 1} {
		if got, err := d.redis.Exists(ctx, key+"{"+dead.ID+"}").Result(); err != nil || got != want {
			t.Errorf("%s{%s}: %d (%v), want %d", key, dead.ID, got, err, want)
		}
	}
}
