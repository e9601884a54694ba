package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// Each of these injects a fault, keeps it up, and returns when it is over. The load goes on
// all the while.

func nothing(ctx context.Context, s *stage) error {
	s.inject()
	return s.beats(ctx, 6)
}

func killBroker(ctx context.Context, s *stage) error {
	s.inject()
	s.victim().kill()
	if err := s.exorcise(ctx); err != nil {
		return err
	}
	s.say("the victim is started again")
	return s.victim().start(ctx)
}

func killBrokerAndJanitor(ctx context.Context, s *stage) error {
	s.inject()
	s.victim().kill()
	s.janitor.kill()
	if !pause(ctx, s.times.lease()) {
		return ctx.Err()
	}
	if err := s.janitor.start(); err != nil {
		return err
	}
	if err := s.exorcise(ctx); err != nil {
		return err
	}
	return s.victim().start(ctx)
}

func killTwo(ctx context.Context, s *stage) error {
	other := s.survivors()[s.random.IntN(len(s.brokers)-1)]
	s.inject()
	s.victim().kill()
	if err := s.beats(ctx, 2); err != nil {
		return err
	}
	other.kill()
	if err := s.beats(ctx, 4); err != nil {
		return err
	}
	if err := s.victim().start(ctx); err != nil {
		return err
	}
	return other.start(ctx)
}

func freezeBroker(ctx context.Context, s *stage) error {
	b := s.victim()
	s.inject()
	until := time.Now().Add(s.times.bound())
	if err := b.proc.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	moved := s.each(mover, func(a *actor) bool { return a.at() == b.id }, cutNow)
	s.say("%d clients go elsewhere", moved)
	if err := s.exorcise(ctx); err != nil {
		return err
	}
	if !pause(ctx, time.Until(until)) {
		return ctx.Err()
	}
	s.say("it goes on")
	if err := b.proc.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	return s.beats(ctx, 4)
}

func rollingRestart(ctx context.Context, s *stage) error {
	s.inject()
	for _, b := range s.brokers {
		if err := b.restart(ctx); err != nil {
			return err
		}
		if err := s.beats(ctx, 2); err != nil {
			return err
		}
	}
	return nil
}

func killRedis(ctx context.Context, s *stage) error {
	s.inject()
	s.store.server.Kill()
	if err := s.beats(ctx, 2); err != nil {
		return err
	}
	if err := s.store.server.Restart(); err != nil {
		return err
	}
	s.say("Redis is back")
	return s.beats(ctx, 4)
}

func killMaster(ctx context.Context, s *stage) error {
	p, err := s.store.pair(ctx, s.random.IntN(3))
	if err != nil {
		return err
	}
	if err := p.detach(ctx); err != nil {
		return err
	}
	all := func(*actor) bool { return true }
	s.each(idler, all, (*tap).hold)
	if err := s.beats(ctx, 1); err != nil {
		return err
	}
	s.inject()
	p.master.Kill()
	s.each(idler, all, cutNow) // what they did not read is nowhere but in the store that died
	s.each(idler, all, (*tap).flow)
	if err := s.store.succeed(ctx, p); err != nil {
		return fmt.Errorf("failover: %w", err)
	}
	s.say("another master serves, the dead one is its replica")
	return s.beats(ctx, 4)
}

func freezeMaster(ctx context.Context, s *stage) error {
	p, err := s.store.pair(ctx, 0)
	if err != nil {
		return err
	}
	s.inject()
	if err := p.master.Pause(); err != nil {
		return err
	}
	if err := retry(ctx, func() error { return isMaster(ctx, p.heir) }); err != nil {
		return fmt.Errorf("failover: %w", err)
	}
	if err := s.beats(ctx, 3); err != nil {
		return err
	}
	if err := p.master.Resume(); err != nil {
		return err
	}
	s.say("another master serves, the old one goes on")
	return s.beats(ctx, 6)
}

func cutRedisLink(ctx context.Context, s *stage) error {
	s.inject()
	s.redisLink.cut()
	if err := s.beats(ctx, 4); err != nil {
		return err
	}
	return s.redisLink.mend()
}

func swallowRedisLink(ctx context.Context, s *stage) error {
	s.inject()
	if err := s.redisLink.swallow(); err != nil {
		return err
	}
	if err := s.beats(ctx, 7); err != nil {
		return err
	}
	return s.redisLink.heal(ctx, "timeout")
}

func slowRedisLink(ctx context.Context, s *stage) error {
	s.inject()
	if err := s.redisLink.delay(100 * time.Millisecond); err != nil {
		return err
	}
	if err := s.beats(ctx, 8); err != nil {
		return err
	}
	return s.redisLink.heal(ctx, "latency")
}

func fillRedis(ctx context.Context, s *stage) error {
	node, ok := s.store.client.(*redis.Client)
	if !ok {
		return fmt.Errorf("a %T cannot be filled", s.store.client)
	}
	info := node.InfoMap(ctx, "memory")
	s.inject()
	if err := node.ConfigSet(ctx, "maxmemory", info.Item("Memory", "used_memory")).Err(); err != nil {
		return err
	}
	if err := s.beats(ctx, 7); err != nil {
		return err
	}
	return node.ConfigSet(ctx, "maxmemory", "0").Err()
}

func cutPeerLinks(ctx context.Context, s *stage) error {
	s.inject()
	for _, l := range s.peerLinks {
		l.cut()
	}
	if err := s.beats(ctx, 6); err != nil {
		return err
	}
	for _, l := range s.peerLinks {
		if err := l.mend(); err != nil {
			return err
		}
	}
	return nil
}

func swallowPeerLinks(ctx context.Context, s *stage) error {
	s.inject()
	for _, l := range s.peerLinks {
		if err := l.swallow(); err != nil {
			return err
		}
	}
	if err := s.beats(ctx, 6); err != nil {
		return err
	}
	for _, l := range s.peerLinks {
		if err := l.heal(ctx, "timeout"); err != nil {
			return err
		}
	}
	return nil
}

func flap(ctx context.Context, s *stage) error {
	s.inject()
	end := time.Now().Add(10 * s.times.Beat)
	for time.Now().Before(end) { // about a tenth of them each tenth of a second
		s.each(flappy, func(*actor) bool { return s.random.IntN(10) == 0 }, cutAny(s.random))
		if !pause(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

func stall(ctx context.Context, s *stage) error {
	s.inject()
	all := func(*actor) bool { return true }
	s.say("%d clients stop reading", s.each(idler, all, (*tap).hold))
	err := s.beats(ctx, 7)
	s.each(idler, all, (*tap).flow)
	return err
}

// each does something to the lines of the clients of a role that fit, and counts them.
func (s *stage) each(r role, fits func(*actor) bool, do func(*tap)) (n int) {
	for _, a := range s.actors {
		if a.role == r && fits(a) {
			do(a.tap)
			n++
		}
	}
	return n
}
