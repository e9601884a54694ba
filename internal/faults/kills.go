package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// killsName is what --only knows the series by.
	killsName = "presence after kill -9"
	// observers are brokers that are not killed; each has a watcher.
	observers = 2
	// pollEvery is the time between two looks at what the observers answer.
	pollEvery = 100 * time.Millisecond
	// givenUp is when a kill is taken to have been noticed by nobody.
	givenUp = 40 * time.Second
	// longestKills is when a series that hangs is given up.
	longestKills = 10 * time.Minute
)

// series is a number of kills: in each round all victims, within one beat of each other.
type series struct {
	rounds, victims int
	times           times
	bars            bars
}

// bars are the most that the times may be without being red.
type bars struct{ answers, told, offline time.Duration }

var (
	// fullSeries has the times that brokers and the janitor have by default.
	fullSeries = series{rounds: 5, victims: 10, times: times{2 * time.Second}, bars: bars{11 * time.Second, 20 * time.Second, 25 * time.Second}}
	// shortSeries may run on a machine that is busy with other things.
	shortSeries = series{rounds: 1, victims: 3, times: times{shortBeat}, bars: bars{20 * time.Second, 20 * time.Second, 25 * time.Second}}
)

// cell is the channel that the clients of a victim are in, inmate their user.
func cell(b *instance) string   { return "cell-" + b.name }
func inmate(b *instance) string { return "inmate-" + b.name }

// kills plays a series.
func (r *runner) kills(ctx context.Context, plan series) *killSeries {
	began := time.Now()
	result := newKillSeries(plan)
	s := &stage{
		scenario: scenario{name: killsName, redis: single, brokers: observers + plan.victims}, times: plan.times,
		seed: r.seed, random: rand.New(rand.NewPCG(r.seed, 2)), book: newBook(), roster: newAttendance(),
		dir: filepath.Join(r.dir, strings.ReplaceAll(killsName, " ", "-")),
	}
	s.say = func(format string, args ...any) {
		r.say("%-28s %5.1f s  %s", killsName, time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	ctx, cancel := context.WithTimeout(ctx, longestKills)
	defer cancel()
	err := r.playKills(ctx, s, plan, result)
	s.strike()
	result.conclude(s, err, time.Since(began))
	if len(result.Red) == 0 && !r.keepLogs {
		_ = removeDir(s.dir)
	} else {
		result.logs = s.dir
		if err := s.keepLogs(); err != nil {
			s.say("the logs are lost: %v", err)
		}
	}
	s.say("%s %s", result.verdict(), strings.Join(result.Red, ", "))
	return result
}

func (r *runner) playKills(ctx context.Context, s *stage, plan series, result *killSeries) error {
	if err := makeDir(s.dir); err != nil {
		return err
	}
	if err := s.set(ctx, r.programs); err != nil {
		return fmt.Errorf("the start: %w", err)
	}
	victims := s.brokers[observers:]
	var channels []string
	for _, b := range victims {
		channels = append(channels, cell(b), userPrefix+inmate(b))
	}
	opening, cancel := context.WithTimeout(ctx, givenUp)
	defer cancel()
	if err := s.watch(opening, s.brokers[:observers], channels); err != nil {
		return err
	}
	for round := range plan.rounds {
		if round > 0 {
			if err := startAll(ctx, victims); err != nil {
				return err
			}
		}
		if err := s.killRound(ctx, round, victims, result); err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
		s.say("round %d of %d", round+1, plan.rounds)
	}
	return nil
}

func startAll(ctx context.Context, brokers []*instance) error {
	var starting errgroup.Group
	for _, b := range brokers {
		starting.Go(func() error { return b.start(ctx) })
	}
	return starting.Wait()
}

// killRound kills all victims, each with clients that do not come back.
func (s *stage) killRound(ctx context.Context, round int, victims []*instance, result *killSeries) error {
	s.cast = s.cast[:0]
	s.ghosts = s.ghosts[:0]
	for _, b := range victims {
		for i := range ghostCount {
			m := member{
				client: fmt.Sprintf("%s/inmate-%s-%d-%d", inmate(b), b.name, round, i), user: inmate(b), channels: []string{cell(b)},
				knock: knock(i % int(knocks)),
			}
			s.cast = append(s.cast, m)
			if err := s.summon(ctx, m, b); err != nil {
				return err
			}
		}
	}
	entering, cancel := context.WithTimeout(ctx, givenUp)
	defer cancel()
	if err := s.certain(entering, s.truth(s.cast)); err != nil {
		return err
	}
	var killing errgroup.Group
	for i, b := range victims {
		wait := time.Duration(s.random.Int64N(int64(s.times.Beat)))
		doomed := s.cast[i*ghostCount : (i+1)*ghostCount]
		ghosts := s.ghosts[i*ghostCount : (i+1)*ghostCount]
		killing.Go(func() error {
			if !pause(ctx, wait) {
				return ctx.Err()
			}
			at := time.Now()
			b.kill()
			for _, g := range ghosts {
				g.vanish()
			}
			k, err := s.aftermath(ctx, b, doomed, at)
			if err == nil {
				result.add(k)
			}
			return err
		})
	}
	return killing.Wait()
}

// aftermath measures until nobody takes the clients of a broker that was killed for present.
func (s *stage) aftermath(ctx context.Context, b *instance, doomed []member, at time.Time) (kill, error) {
	ctx, cancel := context.WithDeadline(ctx, at.Add(givenUp))
	defer cancel()
	var names []string
	for _, m := range doomed {
		names = append(names, label(m.user, m.client))
	}
	var k kill
	var polling errgroup.Group
	polling.Go(func() (err error) {
		k.Answers, err = s.answered(ctx, b, at)
		return err
	})
	var err1, err2 error
	k.Told, err1 = s.heard(ctx, cell(b), names, at)
	k.Offline, err2 = s.heard(ctx, userPrefix+inmate(b), []string{inmate(b)}, at)
	if err := errors.Join(polling.Wait(), err1, err2); err != nil {
		return k, fmt.Errorf("%s: %w", b.name, err)
	}
	return k, nil
}

// answered is the time until no answer names the clients of a victim, or calls its user online.
func (s *stage) answered(ctx context.Context, victim *instance, at time.Time) (time.Duration, error) {
	for {
		left, err := 0, error(nil)
		for _, b := range s.brokers[:observers] {
			c, err1 := b.presence(ctx, cell(victim))
			n, err2 := onlineUsers(ctx, b, []string{inmate(victim)})
			left, err = left+n+len(c.names)-observers, errors.Join(err, err1, err2) // the watchers are there as well
		}
		if err == nil && left <= 0 {
			return time.Since(at), nil
		}
		if !pause(ctx, pollEvery) {
			return 0, errors.Join(fmt.Errorf("%d are still in the answers", left), err)
		}
	}
}

// heard is the time until all watchers had been told that these are gone.
func (s *stage) heard(ctx context.Context, channel string, names []string, at time.Time) (took time.Duration, err error) {
	for _, w := range s.watchers {
		var last time.Time
		if err := retry(ctx, func() (err error) {
			var gone bool
			if last, gone = s.roster.lastHeard(roll{w.name, channel}, names); !gone {
				err = fmt.Errorf("%s was not told that all have left %s", w.name, channel)
			}
			return err
		}); err != nil {
			return 0, err
		}
		took = max(took, last.Sub(at))
	}
	return took, nil
}
