package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"switchboard/internal/await"

	"github.com/redis/go-redis/v9"
)

// Each function in this file injects a fault, keeps it up, and returns when it is over. The load
// continues meanwhile.

func noFault(ctx context.Context, tb *bed) error {
	tb.recordFault()
	return tb.awaitBeats(ctx, 6)
}

func killBroker(ctx context.Context, tb *bed) error {
	tb.recordFault()
	tb.victim().Kill()
	if err := tb.awaitGhostsGone(ctx); err != nil {
		return err
	}
	tb.logf("restarting the victim")
	return tb.victim().Start(ctx)
}

func killStoringBroker(ctx context.Context, tb *bed) error {
	tb.recordFault()
	tb.victim().Kill()
	if err := await.Pause(ctx, tb.times.cleanupBound()); err != nil {
		return err
	}
	return tb.victim().Start(ctx)
}

func killBrokerAndJanitor(ctx context.Context, tb *bed) error {
	tb.recordFault()
	tb.victim().Kill()
	tb.janitor.Kill()
	if err := await.Pause(ctx, tb.times.lease()); err != nil {
		return err
	}
	if err := tb.janitor.Start(); err != nil {
		return err
	}
	if err := tb.awaitGhostsGone(ctx); err != nil {
		return err
	}
	return tb.victim().Start(ctx)
}

func killTwo(ctx context.Context, tb *bed) error {
	other := tb.survivors()[tb.random.IntN(len(tb.brokers)-1)]
	tb.recordFault()
	tb.victim().Kill()
	if err := tb.awaitBeats(ctx, 2); err != nil {
		return err
	}
	other.Kill()
	if err := tb.awaitBeats(ctx, 4); err != nil {
		return err
	}
	if err := tb.victim().Start(ctx); err != nil {
		return err
	}
	return other.Start(ctx)
}

func freezeBroker(ctx context.Context, tb *bed) error {
	b := tb.victim()
	tb.recordFault()
	until := time.Now().Add(tb.times.cleanupBound())
	if err := b.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	count := tb.eachLink(moving, func(a *testClient) bool { return a.connectedTo() == b.ID }, cutNow)
	tb.logf("%d clients move to other brokers", count)
	if err := tb.awaitGhostsGone(ctx); err != nil {
		return err
	}
	if err := await.Pause(ctx, time.Until(until)); err != nil {
		return err
	}
	tb.logf("resuming the victim")
	if err := b.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	return tb.awaitBeats(ctx, 4)
}

func rollingRestart(ctx context.Context, tb *bed) error {
	tb.recordFault()
	for _, b := range tb.brokers {
		if err := b.Restart(ctx); err != nil {
			return err
		}
		if err := tb.awaitBeats(ctx, 2); err != nil {
			return err
		}
	}
	return nil
}

func killRedis(ctx context.Context, tb *bed) error {
	tb.recordFault()
	tb.store.server.Kill()
	if err := tb.awaitBeats(ctx, 2); err != nil {
		return err
	}
	if err := tb.store.server.Restart(); err != nil {
		return err
	}
	tb.logf("Redis is running again")
	return tb.awaitBeats(ctx, 4)
}

func killMaster(ctx context.Context, tb *bed) error {
	p, err := detachReplica(ctx, tb)
	if err != nil {
		return err
	}
	tb.recordFault()
	cutStalledClients(tb, p)
	return tb.awaitFailover(ctx, p, 4)
}

// killTwoMasters is killMaster twice in a row. The clients that do not read miss what the first new
// master tells them about the loss.
func killTwoMasters(ctx context.Context, tb *bed) error {
	first, err := detachReplica(ctx, tb)
	if err != nil {
		return err
	}
	tb.recordFault()
	first.master.Kill()
	if err := tb.awaitFailover(ctx, first, 0); err != nil {
		return err
	}
	second, err := detachReplica(ctx, tb)
	if err != nil {
		return err
	}
	cutStalledClients(tb, second)
	return tb.awaitFailover(ctx, second, 4)
}

// detachReplica ends the replication of a master. It returns after a beat in which the clients that
// stall read nothing.
func detachReplica(ctx context.Context, tb *bed) (failoverPair, error) {
	p, err := tb.store.failoverPair(ctx, tb.random.IntN(3))
	if err != nil {
		return p, err
	}
	if err := p.replica.Detach(ctx); err != nil {
		return p, err
	}
	tb.eachLink(stalling, allClients, (*clientLink).stopReading)
	return p, tb.awaitBeats(ctx, 1)
}

// cutStalledClients kills the master, and then cuts the clients that stall. Now only the dead
// master has the messages that they did not read.
func cutStalledClients(tb *bed, p failoverPair) {
	p.master.Kill()
	tb.eachLink(stalling, allClients, cutNow)
	tb.eachLink(stalling, allClients, (*clientLink).resumeReading)
}

func allClients(*testClient) bool { return true }

// awaitFailover waits until the replica has taken over, and then for some beats.
func (tb *bed) awaitFailover(ctx context.Context, p failoverPair, beats float64) error {
	if err := tb.store.awaitFailover(ctx, p); err != nil {
		return fmt.Errorf("failover: %w", err)
	}
	tb.logf("the replica is master, the old master is its replica")
	return tb.awaitBeats(ctx, beats)
}

func freezeMaster(ctx context.Context, tb *bed) error {
	p, err := tb.store.failoverPair(ctx, 0)
	if err != nil {
		return err
	}
	tb.recordFault()
	if err := p.master.Pause(); err != nil {
		return err
	}
	if err := await.Success(ctx, func() error { return isMaster(ctx, p.replica) }); err != nil {
		return fmt.Errorf("failover: %w", err)
	}
	if err := tb.awaitBeats(ctx, 3); err != nil {
		return err
	}
	if err := p.master.Resume(); err != nil {
		return err
	}
	tb.logf("the replica is master, the old master is running again")
	return tb.awaitBeats(ctx, 6)
}

func cutRedisLink(ctx context.Context, tb *bed) error {
	tb.recordFault()
	tb.redisLink.Cut()
	if err := tb.awaitBeats(ctx, 4); err != nil {
		return err
	}
	return tb.redisLink.Restore(ctx)
}

func blackholeRedisLink(ctx context.Context, tb *bed) error {
	tb.recordFault()
	if err := tb.redisLink.Blackhole(); err != nil {
		return err
	}
	if err := tb.awaitBeats(ctx, 7); err != nil {
		return err
	}
	return tb.redisLink.Restore(ctx)
}

func slowRedisLink(ctx context.Context, tb *bed) error {
	tb.recordFault()
	if err := tb.redisLink.Delay(100 * time.Millisecond); err != nil {
		return err
	}
	if err := tb.awaitBeats(ctx, 8); err != nil {
		return err
	}
	return tb.redisLink.Restore(ctx)
}

func fillRedis(ctx context.Context, tb *bed) error {
	node, ok := tb.store.client.(*redis.Client)
	if !ok {
		return fmt.Errorf("a %T cannot be filled", tb.store.client)
	}
	info := node.InfoMap(ctx, "memory")
	tb.recordFault()
	if err := node.ConfigSet(ctx, "maxmemory", info.Item("Memory", "used_memory")).Err(); err != nil {
		return err
	}
	if err := tb.awaitBeats(ctx, 7); err != nil {
		return err
	}
	return node.ConfigSet(ctx, "maxmemory", "0").Err()
}

func cutPeerLinks(ctx context.Context, tb *bed) error {
	tb.recordFault()
	for _, l := range tb.peerLinks {
		l.Cut()
	}
	if err := tb.awaitBeats(ctx, 6); err != nil {
		return err
	}
	for _, l := range tb.peerLinks {
		if err := l.Restore(ctx); err != nil {
			return err
		}
	}
	return nil
}

// cutOffBroker cuts the links from the other brokers to the victim, and leaves its own.
func cutOffBroker(ctx context.Context, tb *bed) error {
	tb.recordFault()
	l := tb.peerLinks[slices.Index(tb.brokers, tb.victim())]
	l.Cut()
	if err := tb.awaitBeats(ctx, 6); err != nil {
		return err
	}
	return l.Restore(ctx)
}

// moveSlots moves slots of random keys from the first master to the second.
func moveSlots(ctx context.Context, tb *bed) error {
	c := tb.store.cluster
	tb.recordFault()
	for range 12 {
		key, err := c.Masters[0].Do(ctx, "randomkey").Text()
		if err != nil {
			return err
		}
		if err := c.MoveSlot(ctx, key, c.Masters[0], c.Masters[1], func() {}); err != nil {
			return err
		}
		if err := tb.awaitBeats(ctx, 0.5); err != nil {
			return err
		}
	}
	return tb.awaitBeats(ctx, 4)
}

func blackholePeerLinks(ctx context.Context, tb *bed) error {
	tb.recordFault()
	for _, l := range tb.peerLinks {
		if err := l.Blackhole(); err != nil {
			return err
		}
	}
	if err := tb.awaitBeats(ctx, 6); err != nil {
		return err
	}
	for _, l := range tb.peerLinks {
		if err := l.Restore(ctx); err != nil {
			return err
		}
	}
	return nil
}

// freezeRedis stops Redis. Meanwhile the calls of the brokers time out, but their commands stay in
// the sockets. When Redis continues, it executes them and the newer commands, in any order.
func freezeRedis(ctx context.Context, tb *bed) error { return freezeRedisFor(ctx, tb, 4) }

func freezeRedisLong(ctx context.Context, tb *bed) error { return freezeRedisFor(ctx, tb, 10) }

func freezeRedisFor(ctx context.Context, tb *bed, beats time.Duration) error {
	tb.recordFault()
	if err := tb.store.server.Pause(); err != nil {
		return err
	}
	if err := tb.flap(ctx, beats); err != nil {
		return err
	}
	if err := tb.store.server.Resume(); err != nil {
		return err
	}
	tb.logf("Redis is running again")
	return tb.flap(ctx, 4)
}

func flapClients(ctx context.Context, tb *bed) error {
	tb.recordFault()
	return tb.flap(ctx, 10)
}

// flap cuts the links of the flapping clients for a number of beats.
func (tb *bed) flap(ctx context.Context, beats time.Duration) error {
	end := time.Now().Add(beats * tb.times.Beat)
	for time.Now().Before(end) { // cuts about a tenth of them each 100 ms
		tb.eachLink(flapping, func(*testClient) bool { return tb.random.IntN(10) == 0 }, cutAny(tb.random))
		if err := await.Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func stallClients(ctx context.Context, tb *bed) error {
	tb.recordFault()
	tb.logf("%d clients stop reading", tb.eachLink(stalling, allClients, (*clientLink).stopReading))
	err := tb.awaitBeats(ctx, 7)
	tb.eachLink(stalling, allClients, (*clientLink).resumeReading)
	return err
}

// eachLink calls do with the link of each client of the role that matches, and counts them.
func (tb *bed) eachLink(r role, match func(*testClient) bool, do func(*clientLink)) (n int) {
	for _, a := range tb.clients {
		if a.role == r && match(a) {
			do(a.link)
			n++
		}
	}
	return n
}
