package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

// stage is all that a fault acts upon.
type stage struct {
	scenario scenario
	times    times
	dir      string
	random   *rand.Rand // belongs to the fault
	seed     uint64

	store     *store
	redisLink *link   // between the victim and Redis, where the scenario asks for one
	peerLinks []*link // in front of each broker's address for the others
	brokers   []*instance
	janitor   *janitor
	cast      []member
	actors    []*actor
	ghosts    []*ghost
	watchers  []*watcher
	book      *book
	roster    *attendance
	failures  []error
	say       func(format string, args ...any)
}

// victim is the broker that suffers, of a seeded choice.
func (s *stage) victim() *instance { return s.brokers[s.seed%uint64(len(s.brokers))] }

// survivors are the others.
func (s *stage) survivors() (rest []*instance) {
	for _, b := range s.brokers {
		if b != s.victim() {
			rest = append(rest, b)
		}
	}
	return rest
}

// inject is the moment of the fault.
func (s *stage) inject() {
	s.book.inject(time.Now())
	s.say("fault")
}

// beats waits for so many beats.
func (s *stage) beats(ctx context.Context, n float64) error {
	if !pause(ctx, time.Duration(n*float64(s.times.Beat))) {
		return ctx.Err()
	}
	return nil
}

// set starts Redis, the brokers and the janitor.
func (s *stage) set(ctx context.Context, programs binaries) error {
	var err error
	if s.store, err = launchStore(s.scenario.redis, s.dir); err != nil {
		return err
	}
	n := max(s.scenario.brokers, 3)
	addrs, err := freeAddrs(3 * n)
	if err != nil {
		return err
	}
	env := environ("SWITCHBOARD_TIMES_BEAT=" + s.times.Beat.String())
	if s.scenario.hints != "" {
		env = append(env, "SWITCHBOARD_FAULTS_HINTS="+s.scenario.hints)
	}
	for i := range n {
		s.brokers = append(s.brokers, &instance{
			name: fmt.Sprintf("b%d", i), http: addrs[3*i], tcp: addrs[3*i+1],
			redis: s.store.url, program: programs.broker, environ: env, drain: s.times.drain(),
		})
		if s.scenario.peerLinks {
			if err := s.linkPeers(s.brokers[i], addrs[3*i+2]); err != nil {
				return err
			}
		}
	}
	if s.scenario.redisLink {
		if s.redisLink, err = newLink("redis", s.store.server.Addr); err != nil {
			return err
		}
		s.victim().redis = "redis://" + s.redisLink.addr()
	}
	if s.scenario.wrongClock {
		s.victim().program = programs.shifted
	}
	s.janitor = &janitor{program: programs.janitor, redis: s.store.url, every: s.times.servers()}
	if err := s.janitor.start(); err != nil {
		return err
	}
	return startAll(ctx, s.brokers)
}

// linkPeers gives a broker an address of its own for the others, behind a proxy.
func (s *stage) linkPeers(b *instance, peer string) error {
	l, err := newLink(b.name, peer)
	if err != nil {
		return err
	}
	s.peerLinks = append(s.peerLinks, l)
	b.peer, b.advertise = peer, l.addr()
	return nil
}

// enter connects all clients and waits until each follows all that it is to follow, and who follows presence knows of it.
func (s *stage) enter(ctx context.Context, scale scale, cast []member) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := s.open(ctx, scale); err != nil {
		return err
	}
	var entering errgroup.Group
	s.cast = cast
	for i, m := range cast {
		a, err := newActor(m, i, s.book, s.brokers)
		if err != nil {
			return err
		}
		s.actors = append(s.actors, a)
		a.start(context.WithoutCancel(ctx))
		entering.Go(func() error { return a.ready(ctx) })
	}
	if err := entering.Wait(); err != nil {
		return err
	}
	if err := s.haunt(ctx); err != nil {
		return err
	}
	return s.certain(ctx, s.truth(append(s.cursed(), cast...)))
}

// exeunt has all clients leave.
func (s *stage) exeunt() {
	var leaving errgroup.Group
	for _, a := range s.actors {
		leaving.Go(func() error {
			a.end()
			if a.err != nil {
				return fmt.Errorf("%s ended by itself: %w", a.member.client, a.err)
			}
			return nil
		})
	}
	if err := leaving.Wait(); err != nil {
		s.failures = append(s.failures, err)
	}
	s.actors = nil
}

// strike ends whatever still runs.
func (s *stage) strike() {
	s.exeunt()
	s.close()
	for _, g := range s.ghosts {
		g.vanish()
	}
	for _, b := range s.brokers {
		if b.proc != nil {
			b.kill()
		}
	}
	if s.janitor != nil && s.janitor.proc != nil {
		s.janitor.kill()
	}
	for _, l := range append(s.peerLinks, s.redisLink) {
		if l != nil {
			l.cut()
		}
	}
	if s.store != nil {
		s.store.kill()
	}
}

// keepLogs writes what all processes said into the scenario's directory.
func (s *stage) keepLogs() error {
	var errs []error
	for _, b := range s.brokers {
		errs = append(errs, writeFile(filepath.Join(s.dir, b.name+".log"), allLogs(b.logs)))
	}
	if s.janitor != nil {
		errs = append(errs, writeFile(filepath.Join(s.dir, "janitor.log"), allLogs(s.janitor.logs)))
	}
	return errors.Join(errs...)
}
