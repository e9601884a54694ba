// Package loop runs short tasks one after the other for the connections of an event loop. Each
// connection belongs to one loop. Only that loop's tasks use the connection's state, so the state
// needs no locks.
package loop

import (
	"runtime"
	"sync"
)

// maxSpare is the longest task slice that is kept for the next run, so that a burst does not hold
// memory forever.
const maxSpare = 4096

// tasksPerYield is how many tasks a loop runs before it yields the processor. Most tasks write to a
// socket, which takes 5 µs and does not yield by itself.
const tasksPerYield = 64

// Task is a task for a loop. Posting an existing pointer as a Task allocates nothing, while a func
// that captures variables does.
type Task interface {
	Run(on *Loop)
}

type taskFunc func()

func (f taskFunc) Run(*Loop) { f() }

// Loop is a queue of tasks that a host runs: an event loop of gnet, or a goroutine. Without a host,
// before Attach and after Detach, each run gets a goroutine of its own. So every posted task runs,
// and a caller may wait for its task.
type Loop struct {
	// Index is this loop's index among all loops of the process, for per-loop slices.
	Index int

	runMu   sync.Mutex // held while tasks run without a host
	runFunc func()     // the method value run, allocated once

	mu        sync.Mutex       // guards the fields below
	host      func(run func()) // nil means no host
	tasks     []Task
	last      []Task // those that run after tasks
	scheduled bool   // a run is scheduled or in progress
	spare     []Task // the slices of the previous run, for reuse
	spareLast []Task
}

// New returns a Loop without a host.
func New(index int) *Loop {
	l := &Loop{Index: index}
	l.runFunc = l.run
	return l
}

// Post queues task after all tasks posted before. It never blocks.
func (l *Loop) Post(task func()) { l.PostTask(taskFunc(task)) }

// PostTask is like Post, for a Task.
func (l *Loop) PostTask(task Task) { l.post(&l.tasks, task) }

// PostLast is like PostTask, but in its run the task comes after those of Post and PostTask. If one
// of these calls PostLast, the task belongs to the same run: it writes what they have gathered.
func (l *Loop) PostLast(task Task) { l.post(&l.last, task) }

func (l *Loop) post(to *[]Task, task Task) {
	l.mu.Lock()
	*to = append(*to, task)
	idle, host := !l.scheduled, l.host
	l.scheduled = true
	l.mu.Unlock()
	if idle {
		l.schedule(host)
	}
}

// Attach gives the loop a host. The function host schedules a call of run on the host's goroutine,
// and must not block. At most one run is scheduled at a time, so tasks stay in order even if the
// host does not keep the order of runs. Call Attach on the host's goroutine: when it returns, no
// task runs elsewhere.
func (l *Loop) Attach(host func(run func())) {
	l.mu.Lock()
	l.host = host
	l.mu.Unlock()
	l.runMu.Lock() // a run without a host may be in progress
	defer l.runMu.Unlock()
}

// Detach removes the host and runs the queued tasks. The host may drop a run that is scheduled. No
// run may be in progress on the host's goroutine.
func (l *Loop) Detach() {
	l.mu.Lock()
	l.host = nil
	l.mu.Unlock()
	l.runMu.Lock()
	defer l.runMu.Unlock()
	l.run()
}

func (l *Loop) schedule(host func(run func())) {
	if host == nil {
		go l.runWithoutHost()
		return
	}
	host(l.runFunc)
}

// runWithoutHost runs the tasks on its own goroutine, or schedules them if there is a host by now.
func (l *Loop) runWithoutHost() {
	l.runMu.Lock()
	defer l.runMu.Unlock()
	l.mu.Lock()
	host := l.host
	l.mu.Unlock()
	if host != nil {
		host(l.runFunc)
		return
	}
	l.run()
}

// run executes the queued tasks. Tasks posted during the run wait for the next one, so that the
// loop serves its sockets in between. run first yields the processor, so that other goroutines can
// post more tasks for this run, and add more messages to the writes of these tasks.
func (l *Loop) run() {
	runtime.Gosched()
	l.runAll(&l.tasks, &l.spare)
	l.runAll(&l.last, &l.spareLast)
	l.mu.Lock()
	l.scheduled = len(l.tasks)+len(l.last) > 0
	again, host := l.scheduled, l.host
	l.mu.Unlock()
	if again {
		l.schedule(host)
	}
}

// runAll runs the tasks of a list. It leaves spare to the tasks that are posted meanwhile, and
// keeps the slice of the list as the next spare.
func (l *Loop) runAll(list, spare *[]Task) {
	l.mu.Lock()
	tasks := *list
	*list, *spare = (*spare)[:0], nil
	l.mu.Unlock()
	for i, task := range tasks {
		if i%tasksPerYield == tasksPerYield-1 {
			runtime.Gosched()
		}
		task.Run(l)
		tasks[i] = nil
	}
	if cap(tasks) <= maxSpare {
		l.mu.Lock()
		*spare = tasks
		l.mu.Unlock()
	}
}

// Goroutine is a Loop on its own goroutine, for connections that no poller serves.
type Goroutine struct{ *Loop }

// NewGoroutine returns a Goroutine. Run executes its tasks on the caller's goroutine.
func NewGoroutine(index int) Goroutine { return Goroutine{New(index)} }

// Run executes tasks until stop is closed, and then the tasks that are still queued.
func (g Goroutine) Run(stop <-chan struct{}) {
	wake := make(chan func(), 1)
	g.Attach(func(run func()) {
		select {
		case wake <- run:
		default: // the run that is already in wake takes all tasks
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
