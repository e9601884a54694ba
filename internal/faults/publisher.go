package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	answerWithin = 3 * time.Second        // else the push is tried elsewhere
	avoidFor     = time.Second            // a broker that did not answer
	pushAgain    = 100 * time.Millisecond // after a refusal
)

// publisher is a backend: it pushes over plain HTTP to any of the brokers, each stream in
// order, and makes a push again under the same key until it is accepted.
type publisher struct {
	book    *book
	durable bool
	http    http.Client

	brokers []string       // host:port
	avoid   []atomic.Int64 // by broker: until then, in ms since began
	began   time.Time
	next    atomic.Uint32
}

func newPublisher(b *book, brokers []string, durable bool) *publisher {
	return &publisher{
		book: b, durable: durable, brokers: brokers, avoid: make([]atomic.Int64, len(brokers)), began: time.Now(),
		http: http.Client{Timeout: answerWithin, Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
}

// run pushes until stop; what is under way then is still tried until ctx ends.
func (p *publisher) run(ctx, stop context.Context, groups [][]stream, rate []float64, seed uint64) {
	defer p.http.CloseIdleConnections()
	var all sync.WaitGroup
	for i, group := range groups {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() { p.group(ctx, stop, group, rate[i], random) })
	}
	all.Wait()
}

// group pushes one message of each of its streams at a time.
func (p *publisher) group(ctx, stop context.Context, group []stream, rate float64, random *rand.Rand) {
	every := time.Duration(float64(time.Second) / rate)
	wait := time.Duration(random.Int64N(int64(every)))
	for n := 1; pause(stop, wait); n++ {
		began := time.Now()
		p.deliver(ctx, group, n)
		jittered := every*3/4 + time.Duration(random.Int64N(int64(every/2)))
		wait = max(0, jittered-time.Since(began))
	}
}

// deliver pushes message n of each stream until all are accepted.
func (p *publisher) deliver(ctx context.Context, group []stream, n int) {
	first := time.Now()
	var left []job
	for _, s := range group {
		p.book.attempt(item{s.name, n}, first)
		left = append(left, job{stream: s, n: n, durable: p.durable})
	}
	for ctx.Err() == nil {
		at := p.broker()
		answers, err := p.post(ctx, p.brokers[at], left)
		acked := time.Now()
		if err != nil {
			if errors.Is(err, errNoAnswer) {
				p.avoid[at].Store((time.Since(p.began) + avoidFor).Milliseconds())
			}
			p.book.refuse(err.Error())
			pause(ctx, pushAgain)
			continue
		}
		var again []job
		for i, j := range left {
			if answers[i].Error != nil {
				p.book.refuse(answers[i].Error.Code)
				again = append(again, j)
				continue
			}
			s := j.stream
			p.book.accept(push{item: item{s.name, n}, queue: s.queue, to: s.to, ids: answers[i].ids(s), first: first, acked: acked})
		}
		if left = again; len(left) == 0 {
			return
		}
		pause(ctx, pushAgain)
	}
}

// broker is the next in turn that is not avoided, or just the next.
func (p *publisher) broker() int {
	first := int(p.next.Add(1))
	now := time.Since(p.began).Milliseconds()
	for i := range p.brokers {
		if at := (first + i) % len(p.brokers); p.avoid[at].Load() <= now {
			return at
		}
	}
	return first % len(p.brokers)
}

// pause waits for d; it reports false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
