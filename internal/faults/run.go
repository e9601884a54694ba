package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"
)

const (
	// longest is when a scenario that hangs is given up, which makes its row red.
	longest = 100 * time.Second
	// lateComers is how long one waits for what should not come: second copies.
	lateComers = 500 * time.Millisecond
)

// runner runs scenarios, one after another.
type runner struct {
	programs binaries
	dir      string // for all files
	seed     uint64
	scale    scale
	times    times
	keepLogs bool
	say      func(format string, args ...any)
}

// run plays one scenario and makes its row.
func (r *runner) run(ctx context.Context, sc scenario) row {
	began := time.Now()
	seed := r.seed
	for _, c := range sc.name { // each scenario draws its own numbers, whichever others run
		seed = seed*1_000_003 + uint64(c)
	}
	s := &stage{
		scenario: sc, times: r.times, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), book: newBook(), roster: newAttendance(),
		dir: filepath.Join(r.dir, strings.NewReplacer(" ", "-", ",", "").Replace(sc.name)),
	}
	s.say = func(format string, args ...any) {
		r.say("%-28s %5.1f s  %s", sc.name, time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	err := r.play(ctx, s)
	s.strike()
	result := s.row(errors.Join(append(s.failures, err)...), time.Since(began))
	if len(result.Red) > 0 || r.keepLogs {
		result.Logs = s.dir
		if err := s.keepLogs(); err != nil {
			s.say("the logs are lost: %v", err)
		}
	} else {
		_ = removeDir(s.dir)
	}
	s.say("%s %s", result.verdict(), strings.Join(result.Red, ", "))
	return result
}

// play is the scenario from the start of Redis to the end of the last broker.
func (r *runner) play(ctx context.Context, s *stage) error {
	if err := makeDir(s.dir); err != nil {
		return err
	}
	if err := s.set(ctx, r.programs); err != nil {
		return fmt.Errorf("the start: %w", err)
	}
	cast := newCast(r.scale, s.scenario.special, s.scenario.percent)
	if err := s.enter(ctx, r.scale, cast); err != nil {
		return fmt.Errorf("the clients: %w", err)
	}
	s.say("%d clients follow all", s.book.confirmed())
	if err := r.load(ctx, s, cast); err != nil {
		return err
	}
	s.settle(ctx)
	if err := s.allTrue(ctx, "when all had come back", cast); err != nil {
		return err
	}
	s.exeunt()
	if err := s.allTrue(ctx, "when all had left", nil); err != nil {
		return err
	}
	s.close()
	return s.remains(ctx, cast)
}

// load pushes, and injects the fault meanwhile.
func (r *runner) load(ctx context.Context, s *stage, cast []member) error {
	groups, rate := newStreams(r.scale, cast)
	var addrs []string
	for _, b := range s.brokers {
		addrs = append(addrs, b.http)
	}
	p := newPublisher(s.book, addrs, s.scenario.durable)
	stop, over := context.WithCancel(ctx)
	defer over()
	last, giveUp := context.WithCancel(ctx)
	defer giveUp()
	pushed := make(chan struct{})
	s.book.begin(time.Now())
	go func() {
		defer close(pushed)
		p.run(last, stop, groups, rate, s.seed)
	}()
	cutting := make(chan struct{})
	go func() {
		defer close(cutting)
		s.restless(stop)
	}()
	err := s.beats(ctx, 2)
	if err == nil {
		err = s.scenario.fault(ctx, s)
	}
	if err == nil {
		err = s.beats(ctx, 3)
	}
	s.book.end(time.Now())
	over()
	<-cutting
	patience := time.AfterFunc(s.patience(), giveUp)
	defer patience.Stop()
	<-pushed
	if n := s.book.unaccepted(); n > 0 && err == nil {
		err = fmt.Errorf("%d pushes were never accepted: %v", n, s.book.refused)
	}
	return err
}

// restless cuts some connections now and then, whatever the fault.
func (s *stage) restless(ctx context.Context) {
	random := rand.New(rand.NewPCG(s.seed, 1))
	tenth := 100 * time.Millisecond
	for pause(ctx, tenth) {
		s.each(restless, func(*actor) bool { return random.IntN(int(restlessFor/tenth)) == 0 }, cutAny(random))
	}
}

// patience is how long one waits for what is still on its way when the load is over.
func (s *stage) patience() time.Duration { return s.times.lease() + 10*time.Second }

// settle waits until all that was acknowledged has arrived, or was declared to be gone.
func (s *stage) settle(ctx context.Context) {
	began := time.Now()
	for time.Since(began) < s.patience() {
		if c, _ := s.book.count(); c.Undeclared == 0 {
			break
		}
		if !pause(ctx, 100*time.Millisecond) {
			return
		}
	}
	s.autopsy(ctx)
	s.say("drained in %.1f s", time.Since(began).Seconds())
	pause(ctx, lateComers)
}

// row sums up.
func (s *stage) row(err error, took time.Duration) row {
	c, found := s.book.count()
	r := row{
		Fault: s.scenario.name, Redis: string(s.scenario.redis), Driven: s.scenario.about, Forgets: s.scenario.forgets,
		counts: c, pauses: s.book.pauses(), Ghosts: s.book.ghosts, Missing: s.book.missing, Phantoms: s.book.phantoms, Pushes: len(s.book.pushes),
		Seconds: took.Round(100 * time.Millisecond).Seconds(), Reasons: s.book.refused,
	}
	r.Told, r.ToldTwice = s.roster.counted()
	for kind, cases := range s.roster.evidence {
		found[kind] = cases
	}
	for _, m := range s.cast {
		if m.client == r.pauses.Slowest {
			r.Slowest = fmt.Sprintf("%s, %v over %v", m.client, m.role, m.knock)
		}
	}
	if err != nil {
		r.Failure = err.Error()
	}
	if r.Red = r.objections(s.scenario.tolerance()); len(r.Red) > 0 {
		r.Evidence = found
	}
	r.Millis = map[string]int64{
		"without_push": r.WithoutPush.Milliseconds(), "recover_p50": r.RecoverP50.Milliseconds(),
		"recover_max": r.RecoverMax.Milliseconds(), "silence": r.Silence.Milliseconds(),
	}
	return r
}

// unaccepted is how many pushes were tried and never accepted.
func (b *book) unaccepted() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.attempts) - len(b.accepted)
}
