package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"switchboard/internal/await"
	"switchboard/internal/testbed"

	"golang.org/x/sync/errgroup"
)

const (
	// killsName is the name of the series for --only.
	killsName = "presence after kill -9"
	// observers is the number of brokers that are not killed; each has a watcher.
	observers = 2
	// pollEvery is the interval between two requests to the observers.
	pollEvery = 100 * time.Millisecond
	// killTimeout is how long to wait until the observers notice a kill.
	killTimeout = 40 * time.Second
	// seriesTimeout ends a series that hangs.
	seriesTimeout = 10 * time.Minute
)

// killPlan is a series of kills. Each round kills all victims within one beat.
type killPlan struct {
	rounds, victims int
	times           times
	limits          killLimits
}

// killLimits are the largest times that are not red.
type killLimits struct{ answers, leaves, offline time.Duration }

var (
	// fullSeries uses the default intervals of brokers and janitor.
	fullSeries = killPlan{rounds: 5, victims: 10, times: times{2 * time.Second}, limits: killLimits{11 * time.Second, 20 * time.Second, 25 * time.Second}}
	// shortSeries has limits for a busy machine.
	shortSeries = killPlan{rounds: 1, victims: 3, times: times{shortBeat}, limits: killLimits{20 * time.Second, 20 * time.Second, 25 * time.Second}}
)

// victimChannel is the channel of a victim's clients, and victimUser is their user.
func victimChannel(b *testbed.Broker) string { return "victims-" + b.Name }
func victimUser(b *testbed.Broker) string    { return "victim-" + b.Name }

// runKills runs a series of kills.
func (r *runner) runKills(ctx context.Context, plan killPlan) *killReport {
	began := time.Now()
	result := newKillReport(plan)
	tb := r.newBed(scenario{name: killsName, redis: single, brokers: observers + plan.victims}, plan.times, r.seed)
	ctx, cancel := context.WithTimeout(ctx, seriesTimeout)
	defer cancel()
	err := r.playKillRounds(ctx, tb, plan, result)
	tb.stopAll()
	result.finish(tb, err, time.Since(began))
	result.logs = r.leave(tb, result.verdict(), result.Red)
	return result
}

func (r *runner) playKillRounds(ctx context.Context, tb *bed, plan killPlan, result *killReport) error {
	if err := makeDir(tb.dir); err != nil {
		return err
	}
	if err := tb.start(ctx, r.programs); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	victims := tb.brokers[observers:]
	var channels []string
	for _, b := range victims {
		channels = append(channels, victimChannel(b), userPrefix+victimUser(b))
	}
	opening, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	if err := tb.addWatchers(opening, tb.brokers[:observers], channels); err != nil {
		return err
	}
	for round := range plan.rounds {
		if round > 0 {
			if err := startAll(ctx, victims); err != nil {
				return err
			}
		}
		if err := tb.killRound(ctx, round, victims, result); err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
		tb.logf("round %d of %d", round+1, plan.rounds)
	}
	return nil
}

func startAll(ctx context.Context, brokers []*testbed.Broker) error {
	var starting errgroup.Group
	for _, b := range brokers {
		starting.Go(func() error { return b.Start(ctx) })
	}
	return starting.Wait()
}

// killRound kills all victims. Each has clients that do not come back.
func (tb *bed) killRound(ctx context.Context, round int, victims []*testbed.Broker, result *killReport) error {
	tb.clientSpecs = tb.clientSpecs[:0]
	tb.ghosts = tb.ghosts[:0]
	for _, b := range victims {
		for i := range ghostCount {
			spec := clientSpec{
				client: fmt.Sprintf("%s/ghost-%s-%d-%d", victimUser(b), b.Name, round, i), user: victimUser(b), channels: []string{victimChannel(b)},
				listener: listener(i % int(socketCount)),
			}
			tb.clientSpecs = append(tb.clientSpecs, spec)
			if err := tb.connectGhost(ctx, spec, b); err != nil {
				return err
			}
		}
	}
	connecting, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	if err := tb.awaitBaseline(connecting, tb.expected(tb.clientSpecs)); err != nil {
		return err
	}
	var killing errgroup.Group
	for i, b := range victims {
		wait := time.Duration(tb.random.Int64N(int64(tb.times.Beat)))
		specs := tb.clientSpecs[i*ghostCount : (i+1)*ghostCount]
		ghosts := tb.ghosts[i*ghostCount : (i+1)*ghostCount]
		killing.Go(func() error {
			if err := await.Pause(ctx, wait); err != nil {
				return err
			}
			killed := time.Now()
			b.Kill()
			for _, g := range ghosts {
				_ = g.Stop()
			}
			k, err := tb.measureKill(ctx, b, specs, killed)
			if err == nil {
				result.add(k)
			}
			return err
		})
	}
	return killing.Wait()
}

// measureKill measures how long the clients of a killed broker are reported present.
func (tb *bed) measureKill(ctx context.Context, b *testbed.Broker, specs []clientSpec, killed time.Time) (killTimes, error) {
	ctx, cancel := context.WithDeadline(ctx, killed.Add(killTimeout))
	defer cancel()
	var names []string
	for _, spec := range specs {
		names = append(names, memberName(spec.user, spec.client))
	}
	var k killTimes
	var polling errgroup.Group
	polling.Go(func() (err error) {
		k.Answers, err = tb.untilAnswersEmpty(ctx, b, killed)
		return err
	})
	var err1, err2 error
	k.Leaves, err1 = tb.untilLeaves(ctx, victimChannel(b), names, killed)
	k.Offline, err2 = tb.untilLeaves(ctx, userPrefix+victimUser(b), []string{victimUser(b)}, killed)
	if err := errors.Join(polling.Wait(), err1, err2); err != nil {
		return k, fmt.Errorf("%s: %w", b.Name, err)
	}
	return k, nil
}

// untilAnswersEmpty returns the time until no answer contains the clients of a victim, or reports
// their user online.
func (tb *bed) untilAnswersEmpty(ctx context.Context, victim *testbed.Broker, killed time.Time) (time.Duration, error) {
	for {
		left, err := 0, error(nil)
		for _, b := range tb.brokers[:observers] {
			c, err1 := readPresence(ctx, b, victimChannel(victim))
			n, err2 := onlineUsers(ctx, b, []string{victimUser(victim)})
			left, err = left+n+len(c.names)-observers, errors.Join(err, err1, err2) // the watchers are members too
		}
		if err == nil && left <= 0 {
			return time.Since(killed), nil
		}
		if await.Pause(ctx, pollEvery) != nil {
			return 0, errors.Join(fmt.Errorf("the answers still contain %d clients or users", left), err)
		}
	}
}

// untilLeaves returns the time until all watchers received leaves of the names.
func (tb *bed) untilLeaves(ctx context.Context, channel string, names []string, killed time.Time) (took time.Duration, err error) {
	for _, w := range tb.watchers {
		var last time.Time
		if err := await.Success(ctx, func() (err error) {
			var gone bool
			if last, gone = tb.presence.lastLeave(viewKey{w.name, channel}, names); !gone {
				err = fmt.Errorf("%s did not receive leaves of all members of %s", w.name, channel)
			}
			return err
		}); err != nil {
			return 0, err
		}
		took = max(took, last.Sub(killed))
	}
	return took, nil
}
