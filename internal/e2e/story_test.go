package e2e

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"switchboard/internal/await"
	"switchboard/internal/keytable"
)

// tooLong is the end of the story in any case; it takes a fraction of that.
const tooLong = 2 * time.Minute

func TestEveryMessageReachesEveryAddresseeOnceAlthoughABrokerIsKilled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), tooLong)
	defer cancel()
	began := time.Now()
	passed := func(format string, args ...any) {
		t.Logf("%5.1f s: %s", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}

	f := launch(ctx, t, 3)
	passed("the fleet is up")
	cast := newCast(f.brokers)
	streams := newStreams(cast)
	l := newLedger(streams)
	victim := f.brokers[1]
	haunt(ctx, t, victim)
	troupe := enter(ctx, t, cast, l)
	everyoneIsUp := func() bool { return len(l.server) == len(cast) }
	l.until(ctx, t, "all clients connect", everyoneIsUp)
	if _, err := keytable.Check(ctx, f.redis); err != nil {
		t.Error(err)
	}
	passed("all clients are connected")

	b := newBackend(f.brokers, l)
	pushed := make(chan struct{})
	go func() {
		defer close(pushed)
		b.run(ctx, streams)
	}()
	l.until(ctx, t, "a third of the pushes is accepted", func() bool { return l.pushes >= len(streams)*perStream/3 })
	n := kill(ctx, t, l, victim)
	l.until(ctx, t, "the clients of the killed broker resume elsewhere", everyoneIsUp)
	passed("a broker was killed, its %d clients are back", n)
	close(b.resume)
	<-pushed
	l.until(ctx, t, "every message arrives", func() bool { return len(l.arrived) == perStream*len(l.expected) })
	passed("%d pushes are %d messages; %d attempts failed, %d of them after the message was stored; %d messages came again to be acknowledged",
		l.pushes, len(l.arrived), b.repeated.Load(), b.unanswered.Load(), l.resumed)

	await.NoError(ctx, t, "acknowledged messages leave the lists", func() error { return keytable.Emptied(ctx, f.redis, keytable.OfWaiting) })
	buried(ctx, t, f, victim)
	exorcised(ctx, t, f.redis)
	passed("the janitor has buried the killed broker")
	troupe.exeunt(ctx, t, len(cast))
	l.until(ctx, t, "nothing is wrong in the end", func() bool { return true })
	l.settle(t)
	passed("the clients have left")
	for _, broker := range f.brokers {
		if broker != victim {
			broker.end(ctx, t, syscall.SIGTERM)
		}
	}
	passed("the brokers have left")

	await.NoError(ctx, t, "what the servers held goes", func() error { return keytable.Emptied(ctx, f.redis, keytable.OfServers) })
	f.janitor.end(ctx, t, syscall.SIGTERM)
	nobodyOnline(ctx, t, f.redis, cast)
	count, err := keytable.Check(ctx, f.redis)
	if err != nil {
		t.Error(err)
	}
	passed("the keys that are left: %v", count)
}

// kill kills a broker and waits until its clients have noticed; it returns how many there
// were. Pushing goes on meanwhile.
func kill(ctx context.Context, t *testing.T, l *ledger, victim *instance) int {
	t.Helper()
	l.Lock()
	n, pushes := l.at(victim.id), l.pushes
	l.Unlock()
	if n < castSize/4 {
		t.Errorf("only %d clients are at the broker that is killed", n)
	}
	victim.end(ctx, t, syscall.SIGKILL)
	l.until(ctx, t, "the clients of the killed broker notice", func() bool { return l.at(victim.id) == 0 })
	l.until(ctx, t, "pushing goes on without the killed broker", func() bool { return l.pushes > pushes })
	return n
}

// buried waits until the janitor has cleaned up behind a server.
func buried(ctx context.Context, t *testing.T, f *fleet, dead *instance) {
	t.Helper()
	await.NoError(ctx, t, "the janitor buries the killed broker", func() error {
		listed, err := f.redis.SIsMember(ctx, "s_list", dead.id).Result()
		if err == nil && listed {
			err = fmt.Errorf("%s is still listed", dead.id)
		}
		return err
	})
	for key, want := range map[string]int64{"s_": 0, "s_ch_": 0, "s_c_": 0, "s_dead_": 1} {
		if got, err := f.redis.Exists(ctx, key+"{"+dead.id+"}").Result(); err != nil || got != want {
			t.Errorf("%s{%s}: %d (%v), want %d", key, dead.id, got, err, want)
		}
	}
}
