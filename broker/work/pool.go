// Package work runs what must not block an event loop: calls to the store. A fixed
// number of workers takes jobs in the order they came, so no queue starves another.
package work

import (
	"cmp"
	"sync"
	"time"
)

// linger is how long a worker without a job stays at least, and at most twice as long. When thousands of clients come
// back at once, growing the stacks of new workers was a tenth of what they cost.
const linger = 100 * time.Millisecond

// Pool is a bounded set of workers that come and go with the work.
type Pool struct {
	size  int
	start func(worker func())
	stay  bool // workers linger

	mu      sync.Mutex // guards the fields below
	jobs    []func()
	running int       // workers that have a job, or look for one
	idle    sync.Cond // signalled when there are none any more

	waiting int       // workers that linger and were not called yet
	called  int       // those that were, and have not woken up
	call    sync.Cond // signalled for each job that one of them shall take, and when a round ends
	round   int       // who lingers leaves behind the first whole one
	ending  bool      // the end of the round is set
}

// New returns a Pool of at most size workers. Zero means 256: jobs wait for the store most
// of the time, and as many as wait together share its round trips.
func New(size int) *Pool {
	p := NewOn(size, func(worker func()) { go worker() })
	p.stay = true
	return p
}

// NewOn is New with workers that run where start lets them, and when: a simulation decides
// who is next. start must not wait for the worker. They do not linger.
func NewOn(size int, start func(worker func())) *Pool {
	p := &Pool{size: cmp.Or(size, 256), start: start}
	p.idle.L, p.call.L = &p.mu, &p.mu
	return p
}

// Go queues job. It never blocks.
func (p *Pool) Go(job func()) {
	p.mu.Lock()
	p.jobs = append(p.jobs, job)
	start := false
	switch {
	case p.waiting > 0:
		p.waiting--
		p.called++
		p.running++
		p.call.Signal()
	case p.running < p.size:
		p.running++
		start = true
	}
	p.mu.Unlock()
	if start {
		p.start(p.worker)
	}
}

func (p *Pool) worker() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for len(p.jobs) == 0 {
			if p.jobs = nil; !p.rest() {
				return
			}
		}
		job := p.jobs[0]
		p.jobs[0] = nil
		p.jobs = p.jobs[1:]
		p.mu.Unlock()
		job()
		p.mu.Lock()
	}
}

// rest is what a worker does without a job. It is false when he leaves. p.mu is held when it is called and when it
// returns.
func (p *Pool) rest() bool {
	if p.running--; p.running == 0 {
		p.idle.Broadcast()
	}
	if !p.stay {
		return false
	}
	if p.waiting++; !p.ending {
		p.ending = true
		time.AfterFunc(linger, p.endRound)
	}
	for round := p.round; p.called == 0; p.call.Wait() {
		if p.round > round+1 {
			p.waiting--
			return false
		}
	}
	p.called--
	return true
}

// endRound sends home who has lingered for a whole round.
func (p *Pool) endRound() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.round++
	if p.ending = p.waiting > 0; p.ending {
		time.AfterFunc(linger, p.endRound)
	}
	p.call.Broadcast()
}

// Queued is the number of jobs that no worker has taken yet.
func (p *Pool) Queued() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.jobs)
}

// Wait returns when no job is queued or running.
func (p *Pool) Wait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.running > 0 {
		p.idle.Wait()
	}
}
