package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"switchboard/internal/await"
)

const (
	pushTimeout    = 3 * time.Second        // otherwise the push goes to another broker
	avoidTime      = time.Second            // for a broker that did not answer
	pushRetryDelay = 100 * time.Millisecond // after a refusal
)

// publisher is a backend. It pushes over plain HTTP to any of the brokers, in order within each
// stream, and repeats a push under the same key until it is accepted.
type publisher struct {
	journal *journal
	durable bool
	http    http.Client

	brokers    []string       // host:port
	avoidUntil []atomic.Int64 // by broker, in ms since began
	began      time.Time
	erasing    sync.WaitGroup // erasures that have not ended
	next       atomic.Uint32
}

func newPublisher(j *journal, brokers []string, durable bool) *publisher {
	return &publisher{
		journal: j, durable: durable, brokers: brokers, avoidUntil: make([]atomic.Int64, len(brokers)), began: time.Now(),
		http: http.Client{Timeout: pushTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
}

// run pushes and erases until stop is done. It repeats unaccepted calls until ctx is done.
func (p *publisher) run(ctx, stop context.Context, groups [][]stream, rate []float64, seed uint64) {
	defer p.http.CloseIdleConnections()
	var all sync.WaitGroup
	for i, group := range groups {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() { p.pushGroup(ctx, stop, group, rate[i], random) })
	}
	all.Wait()
	p.erasing.Wait()
}

// pushGroup pushes the next message of each stream in the group, rate times a second, until stop is
// done.
func (p *publisher) pushGroup(ctx, stop context.Context, group []stream, rate float64, random *rand.Rand) {
	every := time.Duration(float64(time.Second) / rate)
	wait := time.Duration(random.Int64N(int64(every)))
	for n := 1; await.Pause(stop, wait) == nil; n++ {
		began := time.Now()
		p.pushUntilAccepted(ctx, group, n)
		jittered := every*3/4 + time.Duration(random.Int64N(int64(every/2)))
		wait = max(0, jittered-time.Since(began))
	}
}

// pushUntilAccepted pushes message n of each stream until all are accepted.
func (p *publisher) pushUntilAccepted(ctx context.Context, group []stream, n int) {
	first := time.Now()
	var left []pushRequest
	for _, s := range group {
		p.journal.attempt(item{s.name, n}, first)
		left = append(left, pushRequest{stream: s, n: n, durable: p.durable})
	}
	for ctx.Err() == nil {
		at := p.nextBroker()
		answers, err := p.post(ctx, p.brokers[at], left)
		acked := time.Now()
		if err != nil {
			if errors.Is(err, errNoAnswer) {
				p.avoid(at)
			}
			p.journal.refuse(err.Error())
			_ = await.Pause(ctx, pushRetryDelay)
			continue
		}
		var retry []pushRequest
		for i, request := range left {
			if answers[i].Error != nil {
				p.journal.refuse(answers[i].Error.Code)
				retry = append(retry, request)
				continue
			}
			s := request.stream
			push := acceptedPush{item: item{s.name, n}, queue: s.queue, to: s.to, ids: answers[i].ids(s), firstTry: first, acceptedAt: acked}
			p.journal.accept(push)
			p.eraseLater(ctx, push, answers[i].ID)
		}
		if left = retry; len(left) == 0 {
			return
		}
		_ = await.Pause(ctx, pushRetryDelay)
	}
}

// nextBroker returns the next broker in turn that is not avoided, or the next if all are.
func (p *publisher) nextBroker() int {
	first := int(p.next.Add(1))
	now := time.Since(p.began).Milliseconds()
	for i := range p.brokers {
		if at := (first + i) % len(p.brokers); p.avoidUntil[at].Load() <= now {
			return at
		}
	}
	return first % len(p.brokers)
}

// avoid makes nextBroker avoid a broker for avoidTime.
func (p *publisher) avoid(at int) {
	p.avoidUntil[at].Store((time.Since(p.began) + avoidTime).Milliseconds())
}
