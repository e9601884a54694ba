// Package loop runs short tasks one after the other for the connections that live on
// the same event loop. What belongs to a connection is touched only by tasks of its
// loop, so it needs no locks.
package loop

import "sync"

// Loop is one event loop: a mailbox in front of a gnet loop, or of a goroutine.
type Loop struct {
	// Index is this loop's place among all loops of the process, for per-loop slices.
	Index int

	arm func(run func()) // makes run happen soon, once, on the loop

	mu    sync.Mutex // guards the fields below
	tasks []func()
	armed bool
	spare []func() // the slice of the run before, to be used again
}

// New returns a Loop. arm must cause run to be called soon on the loop's own thread of
// execution; it is called with at most one run outstanding, so order is kept even where
// the loop underneath does not promise it.
func New(index int, arm func(run func())) *Loop {
	return &Loop{Index: index, arm: arm}
}

// Post queues task behind all tasks posted before. It never blocks.
func (l *Loop) Post(task func()) {
	l.mu.Lock()
	l.tasks = append(l.tasks, task)
	arm := !l.armed
	l.armed = true
	l.mu.Unlock()
	if arm {
		l.arm(l.run)
	}
}

// run executes what is queued now; what comes meanwhile waits for the next run, so that
// the sockets of the loop get their turn between.
func (l *Loop) run() {
	l.mu.Lock()
	tasks := l.tasks
	l.tasks = l.spare[:0]
	l.mu.Unlock()
	for i, task := range tasks {
		task()
		tasks[i] = nil
	}
	l.mu.Lock()
	if cap(tasks) <= 4096 { // a burst must not be remembered for ever
		l.spare = tasks
	} else {
		l.spare = nil
	}
	l.armed = len(l.tasks) > 0
	again := l.armed
	l.mu.Unlock()
	if again {
		l.arm(l.run)
	}
}

// Goroutine is a Loop on a goroutine of its own, for connections that no poller serves.
type Goroutine struct {
	*Loop
	wake chan func()
}

// NewGoroutine returns a Goroutine loop; nothing happens until Run.
func NewGoroutine(index int) *Goroutine {
	g := &Goroutine{wake: make(chan func(), 1)}
	g.Loop = New(index, func(run func()) { g.wake <- run }) // one outstanding: never blocks
	return g
}

// Run executes tasks until stop is closed, then what is still queued.
func (g *Goroutine) Run(stop <-chan struct{}) {
	for {
		select {
		case run := <-g.wake:
			run()
		case <-stop:
			for {
				select {
				case run := <-g.wake:
					run()
				default:
					return
				}
			}
		}
	}
}
