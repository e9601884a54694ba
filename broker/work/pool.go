// Package work runs jobs that must not block an event loop, such as calls to the store. A bounded
// number of workers takes the jobs in the order of their arrival.
package work

import (
	"cmp"
	"sync"
	"time"
)

// lingerTime is the least time for which a worker without a job waits for one. The most is twice
// that. When thousands of clients reconnected at once and idle workers stopped, growing the stacks
// of new workers took a tenth of the CPU.
const lingerTime = 100 * time.Millisecond

// Pool is a bounded set of workers. It starts workers when jobs wait, and stops idle ones.
type Pool struct {
	size    int
	start   func(worker func())
	lingers bool // whether idle workers linger

	mu      sync.Mutex // guards the fields below
	jobs    []func()
	running int       // workers that do not linger: started, woken or with a job
	idle    sync.Cond // signalled when running becomes 0

	lingering  int       // workers that linger and are not woken
	woken      int       // workers that are woken and do not run yet
	wake       sync.Cond // signalled for each job given to a lingering worker, and when a round ends
	round      int       // counts rounds, of lingerTime each; a worker stops after a whole round without a job
	roundTimer bool      // whether endRound is scheduled
}

// New returns a Pool of at most size workers. Zero means 256: jobs wait for the store most of the
// time, and concurrent calls to it share round trips.
func New(size int) *Pool {
	p := NewOn(size, func(worker func()) { go worker() })
	p.lingers = true
	return p
}

// NewOn is like New, but start runs the workers, and idle workers do not linger. A simulation uses
// it to decide which worker runs next. start must not wait for the worker.
func NewOn(size int, start func(worker func())) *Pool {
	p := &Pool{size: cmp.Or(size, 256), start: start}
	p.idle.L, p.wake.L = &p.mu, &p.mu
	return p
}

// Go queues job. It never blocks.
func (p *Pool) Go(job func()) {
	p.mu.Lock()
	p.jobs = append(p.jobs, job)
	start := false
	switch {
	case p.lingering > 0:
		p.lingering--
		p.woken++
		p.running++
		p.wake.Signal()
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
			if p.jobs = nil; !p.awaitJob() {
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

// awaitJob makes a worker without a job linger. It returns false if the worker must stop. The
// caller holds p.mu, and holds it again when awaitJob returns.
func (p *Pool) awaitJob() bool {
	if p.running--; p.running == 0 {
		p.idle.Broadcast()
	}
	if !p.lingers {
		return false
	}
	if p.lingering++; !p.roundTimer {
		p.roundTimer = true
		time.AfterFunc(lingerTime, p.endRound)
	}
	for round := p.round; p.woken == 0; p.wake.Wait() {
		if p.round > round+1 {
			p.lingering--
			return false
		}
	}
	p.woken--
	return true
}

// endRound begins the next round. Workers that have lingered for a whole round stop.
func (p *Pool) endRound() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.round++
	if p.roundTimer = p.lingering > 0; p.roundTimer {
		time.AfterFunc(lingerTime, p.endRound)
	}
	p.wake.Broadcast()
}

// Queued returns the number of jobs that no worker has taken.
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
