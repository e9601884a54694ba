// Package work runs what must not block an event loop: calls to the store. A fixed
// number of workers takes jobs in the order they came, so no queue starves another.
package work

import (
	"cmp"
	"sync"
)

// Pool is a bounded set of workers that come and go with the work.
type Pool struct {
	size  int
	start func(worker func())

	mu      sync.Mutex // guards the fields below
	jobs    []func()
	running int
	idle    sync.Cond // signalled when the last worker leaves
}

// New returns a Pool of at most size workers. Zero means 256: jobs wait for the store most
// of the time, and as many as wait together share its round trips.
func New(size int) *Pool { return NewOn(size, func(worker func()) { go worker() }) }

// NewOn is New with workers that run where start lets them, and when: a simulation decides
// who is next. start must not wait for the worker.
func NewOn(size int, start func(worker func())) *Pool {
	p := &Pool{size: cmp.Or(size, 256), start: start}
	p.idle.L = &p.mu
	return p
}

// Go queues job. It never blocks.
func (p *Pool) Go(job func()) {
	p.mu.Lock()
	p.jobs = append(p.jobs, job)
	start := p.running < p.size
	if start {
		p.running++
	}
	p.mu.Unlock()
	if start {
		p.start(p.worker)
	}
}

func (p *Pool) worker() {
	for {
		p.mu.Lock()
		if len(p.jobs) == 0 {
			p.jobs = nil
			if p.running--; p.running == 0 {
				p.idle.Broadcast()
			}
			p.mu.Unlock()
			return
		}
		job := p.jobs[0]
		p.jobs[0] = nil
		p.jobs = p.jobs[1:]
		p.mu.Unlock()
		job()
	}
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
