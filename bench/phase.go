package main

import (
	"context"
	"fmt"
	"time"

	"switchboard/bench/usage"
)

// sample holds all counters at one moment.
type sample struct {
	at                      time.Time
	server, redis, bench    time.Duration // CPU
	pushes, received, reads int64
}

func (r *run) sample(ctx context.Context) (s sample, err error) {
	if s.server, err = usage.CPU(r.target.pid); err != nil {
		return s, err
	}
	if s.bench, err = usage.OwnCPU(); err != nil {
		return s, err
	}
	if r.redis != nil {
		if s.redis, err = r.redis.cpu(ctx); err != nil {
			return s, err
		}
	}
	s.received, s.reads = r.swarm.Received()
	if r.publishers != nil {
		s.pushes = r.publishers.answered.Load()
	}
	s.at = time.Now()
	return s, nil
}

// phases are the two ways to push.
var phases = []struct {
	name      string
	roundSize func(o options) int // pushes per round; a round ends when all subscribers have received them
}{
	{"one at a time", func(o options) int { return o.publishers }},
	{"closed loop", func(o options) int { return o.messages }},
}

// runPhase pushes the messages of a phase in rounds of at most roundSize.
func (r *run) runPhase(ctx context.Context, name string, roundSize int) (phaseResult, error) {
	before, err := r.sample(ctx)
	if err != nil {
		return phaseResult{}, err
	}
	for sent := 0; sent < r.opts.messages; {
		n := min(roundSize, r.opts.messages-sent)
		if err := r.runRound(ctx, name, sent, n); err != nil {
			return phaseResult{}, err
		}
		sent += n
	}
	after, err := r.sample(ctx)
	if err != nil {
		return phaseResult{}, err
	}
	return newPhaseResult(name, before, after, r.result.Floor), nil
}

// runRound pushes n messages and waits until all are answered and delivered. sent is the number of
// messages that the phase has pushed before.
func (r *run) runRound(ctx context.Context, name string, sent, n int) error {
	for i := range n {
		channel := (sent + i) % r.opts.channels
		r.expected += int64(r.swarm.Subscribers(channel))
		r.pushes++
		r.publishers.jobs <- channel
	}
	earlier := r.pushes - int64(sent+n) // pushes of earlier phases
	err := r.swarm.Until(ctx, name, func() bool {
		received, _ := r.swarm.Received()
		answered := r.publishers.answered.Load()
		r.progress.Show("%s: %d of %d pushes, %d deliveries", name, answered-earlier, r.opts.messages, received)
		return answered == r.pushes && received >= r.expected || r.publishers.failed() != nil
	})
	if failed := r.publishers.failed(); failed != nil {
		return fmt.Errorf("%s: %w", name, failed)
	}
	return err
}
