package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"time"

	"switchboard/internal/await"
	"switchboard/internal/freeport"
	"switchboard/internal/testbed"

	"golang.org/x/sync/errgroup"
)

// bed holds the processes and clients of one scenario.
type bed struct {
	scenario scenario
	times    times
	dir      string
	random   *rand.Rand // used by the fault only
	seed     uint64

	store       *store
	redisLink   *testbed.Link   // between the victim and Redis; nil for most scenarios
	peerLinks   []*testbed.Link // in front of each broker's listener for the others
	brokers     []*testbed.Broker
	janitor     *testbed.Program
	clientSpecs []clientSpec
	sdk         *sdkProcess // runs the clients of client/js
	keptInJS    int         // messages that these have handled and Redis holds
	clients     []*testClient
	ghosts      []*testbed.Client // of the victim; they disappear with it and never come back
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
func (tb *bed) victim() *testbed.Broker { return tb.brokers[tb.seed%uint64(len(tb.brokers))] }

// survivors returns the brokers other than the victim.
func (tb *bed) survivors() (rest []*testbed.Broker) {
	for _, b := range tb.brokers {
		if b != tb.victim() {
			rest = append(rest, b)
		}
	}
	return rest
}

// clientBrokers returns the brokers to which the clients connect.
func (tb *bed) clientBrokers() []*testbed.Broker {
	if tb.scenario.aloof {
		return tb.survivors()
	}
	return tb.brokers
}

// pushBrokers returns the addresses of the brokers to which the backend pushes, in turn.
func (tb *bed) pushBrokers() (addrs []string) {
	for _, b := range tb.clientBrokers() {
		addrs = append(addrs, b.HTTP)
		if tb.scenario.aloof {
			addrs = append(addrs, tb.victim().HTTP)
		}
	}
	return addrs
}

// recordFault records the time of the fault. Call it just before the fault.
func (tb *bed) recordFault() {
	now := time.Now()
	tb.journal.faultStarts(now)
	if tb.victimID = tb.victim().ID; tb.scenario.ghosts {
		tb.state.ownersDie(now)
	}
	tb.logf("fault")
}

// awaitBeats waits for n beats.
func (tb *bed) awaitBeats(ctx context.Context, n float64) error {
	if err := await.Pause(ctx, time.Duration(n*float64(tb.times.Beat))); err != nil {
		return err
	}
	return nil
}

// errNotYet is the result of a check that is repeated.
var errNotYet = errors.New("not yet")

// within repeats a check until it succeeds, or until the bound has passed. It returns the last
// error of the check then, and that of ctx if it ends.
func within(ctx context.Context, bound, pause time.Duration, check func() error) error {
	deadline := time.Now().Add(bound)
	for {
		err := check()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		if err := await.Pause(ctx, pause); err != nil {
			return err
		}
	}
}

// start starts Redis, the brokers and the janitor.
func (tb *bed) start(ctx context.Context, programs programs) error {
	var err error
	if tb.store, err = launchStore(tb.scenario.redis, tb.dir); err != nil {
		return err
	}
	n := max(tb.scenario.brokers, 3)
	env := []string{
		"SWITCHBOARD_TIMES_BEAT=" + tb.times.Beat.String(), "SWITCHBOARD_NAMESPACES=" + namespaces, "SWITCHBOARD_AUTH_HS256_SECRET=" + tokenSecret,
	}
	if tb.scenario.hints != "" {
		env = append(env, "SWITCHBOARD_FAULTS_HINTS="+tb.scenario.hints)
	}
	for i := range n {
		b, err := tb.newBroker(fmt.Sprintf("b%d", i), programs.broker, env)
		if err != nil {
			return err
		}
		tb.brokers = append(tb.brokers, b)
	}
	if tb.scenario.redisLink {
		if tb.redisLink, err = testbed.NewLink("redis", tb.store.server.Addr); err != nil {
			return err
		}
		tb.victim().Args[1] = "redis://" + tb.redisLink.Addr() // in place of that of the store
	}
	if tb.scenario.wrongClock {
		tb.victim().Path = programs.wrongClock
	}
	tb.janitor = &testbed.Program{
		Name: "janitor", Path: programs.janitor, Args: []string{"--redis", tb.store.url, "--servers-every", tb.times.janitorInterval().String()},
	}
	if tb.scenario.mixed {
		tb.useFormer(programs.former)
	}
	if err := tb.janitor.Start(); err != nil {
		return err
	}
	if tb.sdk, err = startSDK(programs.sdk); err != nil {
		return err
	}
	return startAll(ctx, tb.brokers)
}

// newBroker returns a broker with addresses that stay the same when it restarts. In scenarios with
// links between brokers it has a listener for the others, behind a proxy.
func (tb *bed) newBroker(name, program string, env []string) (b *testbed.Broker, err error) {
	b = &testbed.Broker{Program: testbed.Program{
		Name: name, Path: program, Env: env, Args: []string{"--redis", tb.store.url, "--drain-time", tb.times.drainTime().String()},
	}}
	b.Client = &http.Client{Timeout: apiTimeout}
	peer := ""
	for _, addr := range []*string{&b.HTTP, &b.TCP, &peer} {
		if *addr, err = freeport.Address(); err != nil {
			return nil, err
		}
	}
	if !tb.scenario.peerLinks {
		return b, nil
	}
	l, err := testbed.NewLink(name, peer)
	if err != nil {
		return nil, err
	}
	tb.peerLinks = append(tb.peerLinks, l)
	b.Args = append(b.Args, "--peer", peer, "--advertise", l.Addr())
	return b, nil
}

// connectClients connects all clients and waits until they are ready and presence is correct.
func (tb *bed) connectClients(ctx context.Context, scale scale, specs []clientSpec) error {
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
func (tb *bed) disconnectClients() {
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
func (tb *bed) stopAll() {
	tb.disconnectClients()
	if tb.sdk != nil {
		if err := tb.sdk.stop(); err != nil {
			tb.failures = append(tb.failures, err)
		}
	}
	tb.stopWatchers()
	for _, g := range tb.ghosts {
		_ = g.Stop()
	}
	for _, b := range tb.brokers {
		b.Kill()
	}
	if tb.janitor != nil {
		tb.janitor.Kill()
	}
	for _, l := range append(tb.peerLinks, tb.redisLink) {
		if l != nil {
			l.Cut()
		}
	}
	if tb.store != nil {
		tb.store.kill()
	}
}

// keepLogs writes the logs of all processes into the scenario's directory.
func (tb *bed) keepLogs() error {
	var errs []error
	for _, b := range tb.brokers {
		errs = append(errs, writeFile(filepath.Join(tb.dir, b.Name+".log"), b.Log()))
	}
	if tb.sdk != nil {
		errs = append(errs, writeFile(filepath.Join(tb.dir, "node.log"), tb.sdk.proc.Tail(0)))
	}
	if tb.janitor != nil {
		errs = append(errs, writeFile(filepath.Join(tb.dir, "janitor.log"), tb.janitor.Log()))
	}
	return errors.Join(errs...)
}
