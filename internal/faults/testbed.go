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

// testbed holds the processes and clients of one scenario.
type testbed struct {
	scenario scenario
	times    times
	dir      string
	random   *rand.Rand // used by the fault only
	seed     uint64

	store       *store
	redisLink   *serverLink   // between the victim and Redis; nil for most scenarios
	peerLinks   []*serverLink // in front of each broker's listener for the others
	brokers     []*instance
	janitor     *janitor
	clientSpecs []clientSpec
	sdk         *sdkProcess // runs the clients of client/js
	keptInJS    int         // messages that these have handled and Redis holds
	clients     []*testClient
	ghosts      []*ghost
	watchers    []*watcher
	journal     *journal
	presence    *presenceJournal
	state       *stateJournal
	states      *stateCheck // nil before the check
	victimID    string      // server id of the victim at the time of the fault
	failures    []error
	logf        func(format string, args ...any)
}

// victim returns the broker that the fault hits. The seed chooses it.
func (tb *testbed) victim() *instance { return tb.brokers[tb.seed%uint64(len(tb.brokers))] }

// survivors returns the brokers other than the victim.
func (tb *testbed) survivors() (rest []*instance) {
	for _, b := range tb.brokers {
		if b != tb.victim() {
			rest = append(rest, b)
		}
	}
	return rest
}

// clientBrokers returns the brokers to which the clients connect.
func (tb *testbed) clientBrokers() []*instance {
	if tb.scenario.aloof {
		return tb.survivors()
	}
	return tb.brokers
}

// pushBrokers returns the addresses of the brokers to which the backend pushes, in turn.
func (tb *testbed) pushBrokers() (addrs []string) {
	for _, b := range tb.clientBrokers() {
		addrs = append(addrs, b.http)
		if tb.scenario.aloof {
			addrs = append(addrs, tb.victim().http)
		}
	}
	return addrs
}

// recordFault records the time of the fault. Call it just before the fault.
func (tb *testbed) recordFault() {
	now := time.Now()
	tb.journal.faultStarts(now)
	if tb.victimID = tb.victim().id; tb.scenario.ghosts {
		tb.state.ownersDie(now)
	}
	tb.logf("fault")
}

// awaitBeats waits for n beats.
func (tb *testbed) awaitBeats(ctx context.Context, n float64) error {
	if !pause(ctx, time.Duration(n*float64(tb.times.Beat))) {
		return ctx.Err()
	}
	return nil
}

// start starts Redis, the brokers and the janitor.
func (tb *testbed) start(ctx context.Context, programs programs) error {
	var err error
	if tb.store, err = launchStore(tb.scenario.redis, tb.dir); err != nil {
		return err
	}
	n := max(tb.scenario.brokers, 3)
	addrs, err := freeAddrs(3 * n)
	if err != nil {
		return err
	}
	env := processEnv(
		"SWITCHBOARD_TIMES_BEAT="+tb.times.Beat.String(), "SWITCHBOARD_NAMESPACES="+namespaces, "SWITCHBOARD_AUTH_HS256_SECRET="+tokenSecret,
	)
	if tb.scenario.hints != "" {
		env = append(env, "SWITCHBOARD_FAULTS_HINTS="+tb.scenario.hints)
	}
	for i := range n {
		tb.brokers = append(tb.brokers, &instance{
			name: fmt.Sprintf("b%d", i), http: addrs[3*i], tcp: addrs[3*i+1],
			redis: tb.store.url, program: programs.broker, environ: env, drainTime: tb.times.drainTime(),
		})
		if tb.scenario.peerLinks {
			if err := tb.linkPeers(tb.brokers[i], addrs[3*i+2]); err != nil {
				return err
			}
		}
	}
	if tb.scenario.redisLink {
		if tb.redisLink, err = newServerLink("redis", tb.store.server.Addr); err != nil {
			return err
		}
		tb.victim().redis = "redis://" + tb.redisLink.addr()
	}
	if tb.scenario.wrongClock {
		tb.victim().program = programs.wrongClock
	}
	tb.janitor = &janitor{program: programs.janitor, redis: tb.store.url, every: tb.times.janitorInterval()}
	if tb.scenario.mixed {
		tb.useFormer(programs.former)
	}
	if err := tb.janitor.start(); err != nil {
		return err
	}
	if tb.sdk, err = startSDK(programs.sdk); err != nil {
		return err
	}
	return startAll(ctx, tb.brokers)
}

// linkPeers gives a broker a listener for the other brokers, behind a proxy.
func (tb *testbed) linkPeers(b *instance, peer string) error {
	l, err := newServerLink(b.name, peer)
	if err != nil {
		return err
	}
	tb.peerLinks = append(tb.peerLinks, l)
	b.peer, b.advertise = peer, l.addr()
	return nil
}

// connectClients connects all clients and waits until they are ready and presence is correct.
func (tb *testbed) connectClients(ctx context.Context, scale scale, specs []clientSpec) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := tb.startWatchers(ctx, scale); err != nil {
		return err
	}
	var connecting errgroup.Group
	tb.clientSpecs = specs
	for i, m := range specs {
		a, err := newTestClient(m, i, tb.journal, tb.clientBrokers(), tb.sdk)
		if err != nil {
			return err
		}
		a.states, a.durable = tb.state, tb.scenario.durable
		tb.clients = append(tb.clients, a)
		a.start(context.WithoutCancel(ctx))
		connecting.Go(func() error { return a.subscribe(ctx) })
	}
	if err := connecting.Wait(); err != nil {
		return err
	}
	ghosts := tb.ghostSpecs()
	if err := tb.connectGhosts(ctx, ghosts); err != nil {
		return err
	}
	return tb.awaitBaseline(ctx, tb.expected(append(ghosts, specs...)))
}

// disconnectClients stops all clients.
func (tb *testbed) disconnectClients() {
	var leaving errgroup.Group
	for _, a := range tb.clients {
		leaving.Go(func() error {
			a.stop()
			if a.err != nil {
				return fmt.Errorf("%s ended early: %w", a.clientSpec.client, a.err)
			}
			return nil
		})
	}
	if err := leaving.Wait(); err != nil {
		tb.failures = append(tb.failures, err)
	}
	tb.clients = nil
}

// stopAll ends everything that still runs.
func (tb *testbed) stopAll() {
	tb.disconnectClients()
	if tb.sdk != nil {
		if err := tb.sdk.stop(); err != nil {
			tb.failures = append(tb.failures, err)
		}
	}
	tb.stopWatchers()
	for _, g := range tb.ghosts {
		g.stop()
	}
	for _, b := range tb.brokers {
		if b.proc != nil {
			b.kill()
		}
	}
	if tb.janitor != nil && tb.janitor.proc != nil {
		tb.janitor.kill()
	}
	for _, l := range append(tb.peerLinks, tb.redisLink) {
		if l != nil {
			l.cut()
		}
	}
	if tb.store != nil {
		tb.store.kill()
	}
}

// keepLogs writes the logs of all processes into the scenario's directory.
func (tb *testbed) keepLogs() error {
	var errs []error
	for _, b := range tb.brokers {
		errs = append(errs, writeFile(filepath.Join(tb.dir, b.name+".log"), allLogs(b.runs)))
	}
	if tb.sdk != nil {
		errs = append(errs, writeFile(filepath.Join(tb.dir, "node.log"), tb.sdk.proc.Tail(0)))
	}
	if tb.janitor != nil {
		errs = append(errs, writeFile(filepath.Join(tb.dir, "janitor.log"), allLogs(tb.janitor.runs)))
	}
	return errors.Join(errs...)
}
