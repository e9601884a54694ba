package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"switchboard/internal/await"
)

const (
	// scenarioTimeout ends a scenario that hangs, which makes its row red.
	scenarioTimeout = 100 * time.Second
	// duplicateWait is how long to wait for duplicates, which should not arrive.
	duplicateWait = 500 * time.Millisecond
)

// runner runs scenarios, one after another.
type runner struct {
	programs programs
	dir      string // directory of all files
	seed     uint64
	scale    scale
	times    times
	keepLogs bool
	logf     func(format string, args ...any)
}

// run runs one scenario and returns its row.
func (r *runner) run(ctx context.Context, sc scenario) row {
	began := time.Now()
	seed := r.seed
	for _, c := range sc.name { // a scenario's random numbers do not depend on the other scenarios
		seed = seed*1_000_003 + uint64(c)
	}
	tb := r.newBed(sc, r.times, seed)
	ctx, cancel := context.WithTimeout(ctx, scenarioTimeout)
	defer cancel()
	err := r.playScenario(ctx, tb)
	tb.stopAll()
	result := tb.row(errors.Join(append(tb.failures, err)...), time.Since(began))
	result.Logs = r.leave(tb, result.verdict(), result.Red)
	return result
}

// newBed returns the bed of a scenario, of which nothing has started.
func (r *runner) newBed(sc scenario, t times, seed uint64) *bed {
	began := time.Now()
	return &bed{
		scenario: sc, times: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), journal: newJournal(), presence: newPresenceJournal(), state: newStateJournal(),
		dir: filepath.Join(r.dir, strings.NewReplacer(" ", "-", ",", "").Replace(sc.name)),
		logf: func(format string, args ...any) {
			r.logf("%-28s %5.1f s  %s", sc.name, time.Since(began).Seconds(), fmt.Sprintf(format, args...))
		},
	}
}

// leave reports the end of a scenario. It returns the directory with the logs if they are kept.
func (r *runner) leave(tb *bed, verdict string, red []string) (logs string) {
	if len(red) > 0 || r.keepLogs {
		logs = tb.dir
		if err := tb.keepLogs(); err != nil {
			tb.logf("could not keep the logs: %v", err)
		}
	} else {
		_ = removeDir(tb.dir)
	}
	tb.logf("%s %s", verdict, strings.Join(red, ", "))
	return logs
}

// playScenario runs the scenario from the start of Redis to the end of the last broker.
func (r *runner) playScenario(ctx context.Context, tb *bed) error {
	if err := makeDir(tb.dir); err != nil {
		return err
	}
	if err := tb.start(ctx, r.programs); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	specs := newClientSpecs(r.scale, tb.scenario.special, tb.scenario.percent)
	if err := tb.connectClients(ctx, r.scale, specs); err != nil {
		return fmt.Errorf("clients: %w", err)
	}
	tb.logf("%d clients are ready", tb.journal.readyClients())
	if err := r.pushLoad(ctx, tb, specs); err != nil {
		return err
	}
	tb.awaitDeliveries(ctx)
	if err := tb.checkInboxesOfSDK(ctx); err != nil {
		return fmt.Errorf("inboxes of the clients in JavaScript: %w", err)
	}
	if err := tb.checkErasures(ctx, r.scale); err != nil {
		return fmt.Errorf("erasures: %w", err)
	}
	if err := tb.awaitStates(ctx, r.scale); err != nil {
		return fmt.Errorf("states: %w", err)
	}
	if err := tb.verifyPresence(ctx, "after recovery", specs); err != nil {
		return err
	}
	tb.disconnectClients()
	if err := tb.verifyNoOwners(ctx, r.scale); err != nil {
		return fmt.Errorf("states after all clients left: %w", err)
	}
	if err := tb.verifyPresence(ctx, "after all clients left", nil); err != nil {
		return err
	}
	tb.stopWatchers()
	return tb.checkLeftovers(ctx, specs)
}

// pushLoad pushes, and injects the fault meanwhile.
func (r *runner) pushLoad(ctx context.Context, tb *bed, specs []clientSpec) error {
	groups, rate := newStreams(r.scale, specs)
	p := newPublisher(tb.journal, tb.pushBrokers(), tb.scenario.durable)
	stop, endLoad := context.WithCancel(ctx)
	defer endLoad()
	pushing, giveUp := context.WithCancel(ctx)
	defer giveUp()
	pushed := make(chan struct{})
	tb.journal.loadStarts(time.Now())
	go func() {
		defer close(pushed)
		p.run(pushing, stop, groups, rate, tb.seed)
	}()
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		tb.runState(pushing, stop, p, r.scale)
	}()
	cutting := make(chan struct{})
	go func() {
		defer close(cutting)
		tb.cutReconnecting(stop)
	}()
	err := tb.awaitBeats(ctx, 2)
	if err == nil {
		err = tb.scenario.fault(ctx, tb)
		tb.state.faultEnds(time.Now())
	}
	if err == nil {
		err = tb.awaitBeats(ctx, 3)
	}
	tb.journal.loadEnds(time.Now())
	endLoad()
	<-cutting
	timer := time.AfterFunc(tb.deliveryTimeout(), giveUp)
	defer timer.Stop()
	<-pushed
	<-changed
	if n := tb.journal.unfinishedErasures(); n > 0 && err == nil {
		err = fmt.Errorf("%d erasures were never accepted: %v", n, tb.journal.refused)
	}
	if n := tb.journal.unaccepted(); n > 0 && err == nil {
		err = fmt.Errorf("%d pushes were never accepted: %v", n, tb.journal.refused)
	}
	return err
}

// cutReconnecting cuts some connections and reloads some clients at random times, whatever the
// fault.
func (tb *bed) cutReconnecting(ctx context.Context) {
	random := rand.New(rand.NewPCG(tb.seed, 1))
	tenth := 100 * time.Millisecond
	for await.Pause(ctx, tenth) == nil {
		isDue := func(*testClient) bool { return random.IntN(int(meanReconnectInterval/tenth)) == 0 }
		tb.eachLink(reconnecting, isDue, cutAny(random))
		for _, c := range tb.clients {
			if c.reloads && isDue(c) {
				c.sdk.reload()
			}
		}
	}
}

// deliveryTimeout is how long to wait for deliveries after the load has ended.
func (tb *bed) deliveryTimeout() time.Duration { return tb.times.lease() + 10*time.Second }

// awaitDeliveries waits until all acknowledged messages and reports of erasures have arrived, or
// gaps have declared them lost.
func (tb *bed) awaitDeliveries(ctx context.Context) {
	began := time.Now()
	if err := within(ctx, tb.deliveryTimeout(), 100*time.Millisecond, func() error {
		c, _ := tb.journal.count()
		if e, _ := tb.journal.countErasures(); c.Undeclared != 0 || e.Unreported != 0 {
			return errNotYet
		}
		return nil
	}); ctx.Err() != nil && err != nil {
		return
	}
	tb.explainLosses(ctx)
	tb.logf("drained in %.1f s", time.Since(began).Seconds())
	_ = await.Pause(ctx, duplicateWait)
}

// row builds the scenario's row.
func (tb *bed) row(err error, took time.Duration) row {
	c, found := tb.journal.count()
	r := row{
		Fault: tb.scenario.name, Redis: string(tb.scenario.redis), About: tb.scenario.about, Forgets: tb.scenario.forgets,
		counts: c, OverSSE: tb.journal.countKind(sse), JavaScript: tb.journal.countKind(javaScript), KeptInJS: tb.keptInJS, outages: tb.journal.outages(), Ghosts: tb.journal.ghosts, Missing: tb.journal.missing, Phantoms: tb.journal.phantoms, Pushes: len(tb.journal.pushes),
		Seconds: took.Round(100 * time.Millisecond).Seconds(), Reasons: tb.journal.refused,
	}
	r.Events, r.RepeatedEvents = tb.presence.totals()
	erasures, unreported := tb.journal.countErasures()
	r.eraseCounts = erasures
	for kind, cases := range unreported {
		found[kind] = cases
	}
	for kind, cases := range tb.presence.evidence {
		found[kind] = cases
	}
	if tb.states != nil {
		r.stateCounts = tb.states.counts
		for kind, cases := range tb.states.found {
			found[kind] = cases
		}
	}
	for _, spec := range tb.clientSpecs {
		if spec.client == r.outages.Slowest {
			r.Slowest = fmt.Sprintf("%s, %v over %v", spec.client, spec.role, spec.listener)
		}
	}
	if err != nil {
		r.Failure = err.Error()
	}
	if r.Red = r.redReasons(tb.scenario.tolerance()); len(r.Red) > 0 {
		r.Evidence = found
	}
	r.Millis = map[string]int64{
		"without_push": r.WithoutPush.Milliseconds(), "recover_p50": r.RecoverP50.Milliseconds(),
		"recover_max": r.RecoverMax.Milliseconds(), "silence": r.Silence.Milliseconds(),
		"late_p50": r.LateP50.Milliseconds(), "late_max": r.LateMax.Milliseconds(), "away_max": r.AwayMax.Milliseconds(),
	}
	return r
}

// unaccepted returns how many pushes were tried and never accepted.
func (j *journal) unaccepted() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.attempts) - len(j.accepted)
}
