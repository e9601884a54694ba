// Package loop runs short tasks one after the other for the connections that live on
// the same event loop. What belongs to a connection is touched only by tasks of its
// loop, so it needs no locks.
package loop

import (
	"runtime"
	"sync"
)

// maxSpare is the longest mailbox that is kept for the next run, in tasks: a burst must
// not be remembered for ever.
const maxSpare = 4096

// tasksPerTurn is how many tasks a loop runs before others get the processor: most write to a socket, which takes 5 µs and
// does not give it away by itself.
const tasksPerTurn = 64

// Task is something to do on a loop. To post a pointer that is there already allocates nothing, as a func that captures does.
type Task interface {
	Run(on *Loop)
}

type plain func()

func (f plain) Run(*Loop) { f() }

// Loop is a mailbox in front of a host: an event loop of gnet, or a goroutine. Before it has
// one and after the host is gone, tasks run on a passing goroutine, so that none is ever lost:
// somebody may wait for it.
type Loop struct {
	// Index is this loop's place among all loops of the process, for per-loop slices.
	Index int

	turn sync.Mutex // held while tasks run without a host
	owed func()     // run, allocated once

	mu    sync.Mutex       // guards the fields below
	host  func(run func()) // nil for none
	tasks []Task
	armed bool   // a run is outstanding
	spare []Task // the slice of the run before, to be used again
}

// New returns a Loop without a host.
func New(index int) *Loop {
	l := &Loop{Index: index}
	l.owed = l.run
	return l
}

// Post queues task behind all tasks posted before. It never blocks.
func (l *Loop) Post(task func()) { l.PostTask(plain(task)) }

// PostTask is Post for a Task.
func (l *Loop) PostTask(task Task) {
	l.mu.Lock()
	l.tasks = append(l.tasks, task)
	arm, host := !l.armed, l.host
	l.armed = true
	l.mu.Unlock()
	if arm {
		l.arm(host)
	}
}

// Attach gives the loop a host, which must cause run to be called soon on its own thread of
// execution, and never block. One run is outstanding at a time, so order is kept even where the
// host does not promise it. Attach is called on that thread: when it returns no task runs elsewhere.
func (l *Loop) Attach(host func(run func())) {
	l.mu.Lock()
	l.host = host
	l.mu.Unlock()
	l.turn.Lock() // a run without a host may be under way
	defer l.turn.Unlock()
}

// Detach says that the host is gone, together with the run that it may have owed, and runs
// what is queued. Nothing that belonged to the host's thread may be under way any more.
func (l *Loop) Detach() {
	l.mu.Lock()
	l.host = nil
	l.mu.Unlock()
	l.turn.Lock()
	defer l.turn.Unlock()
	l.run()
}

func (l *Loop) arm(host func(run func())) {
	if host == nil {
		go l.runAlone()
		return
	}
	host(l.owed)
}

// runAlone is a run on a goroutine of its own, unless there is a host by now.
func (l *Loop) runAlone() {
	l.turn.Lock()
	defer l.turn.Unlock()
	l.mu.Lock()
	host := l.host
	l.mu.Unlock()
	if host != nil {
		host(l.owed)
		return
	}
	l.run()
}

// run executes what is queued now; what comes meanwhile waits for the next run, so that
// the sockets of the loop get their turn between. Before all else others get the processor: what they post goes
// together with what is queued, and who stores the next message of a channel adds it to those that are to be written.
func (l *Loop) run() {
	runtime.Gosched()
	l.mu.Lock()
	tasks := l.tasks
	l.tasks = l.spare[:0]
	l.spare = nil
	l.mu.Unlock()
	for i, task := range tasks {
		if i%tasksPerTurn == tasksPerTurn-1 {
			runtime.Gosched()
		}
		task.Run(l)
		tasks[i] = nil
	}
	l.mu.Lock()
	if cap(tasks) <= maxSpare {
		l.spare = tasks
	}
	l.armed = len(l.tasks) > 0
	again, host := l.armed, l.host
	l.mu.Unlock()
	if again {
		l.arm(host)
	}
}

// Goroutine is a Loop on a goroutine of its own, for connections that no poller serves.
type Goroutine struct{ *Loop }

// NewGoroutine returns a Goroutine loop, which is there while Run runs.
func NewGoroutine(index int) Goroutine { return Goroutine{New(index)} }

// Run executes tasks until stop is closed, then what is still queued.
func (g Goroutine) Run(stop <-chan struct{}) {
	wake := make(chan func(), 1)
	g.Attach(func(run func()) {
		select {
		case wake <- run:
		default: // the one that waits takes everything
		}
	})
	defer g.Detach()
	for {
		select {
		case run := <-wake:
			run()
		case <-stop:
			return
		}
	}
}
