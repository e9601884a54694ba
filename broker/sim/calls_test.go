package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing/synctest"
	"time"
)

var (
	errLost = errors.New("sim: the connection to the store broke")
	errDead = errors.New("sim: the process is gone")
)

// stage is how far a call of a store has come.
type stage uint8

const (
	waiting  stage = iota // sent, nothing has happened
	between               // before or behind the reading of owners
	executed              // its answer is on the way
)

func (s stage) String() string { return [...]string{"waiting", "between", "executed"}[s] }

// call is one call of a store, under way.
type call struct {
	node     *node  // who called; nil for the janitor
	who      string // its name
	op, from string // the store's method, and the function that called it
	about    about
	args     string
	arrival  int // among calls with the same words
	deadline time.Time

	stage  stage
	drawn  bool // whether it is slow
	slow   bool // other calls overtake it
	orphan bool // nobody waits for the answer
	do     func() (any, error)
	goOn   chan struct{} // ends the stage between
	answer chan result
	value  any
	err    error
}

// about is the queue, or what else, a call is about.
type about struct {
	channel, client, user string
	server                string // in the registry, which knows the dead
	owner                 string // in the queue, which does not
	generation            int64  // in whose name, 0 for nobody's
}

type result struct {
	value any
	err   error
}

func (c *call) String() string { return fmt.Sprintf("%s %s: %s %s", c.who, c.from, c.op, c.args) }

// compare orders calls by their names: never by which goroutine was faster.
func (c *call) compare(d *call) int {
	return cmp.Or(strings.Compare(c.who, d.who), strings.Compare(c.op, d.op), strings.Compare(c.args, d.args),
		strings.Compare(c.from, d.from), cmp.Compare(c.arrival, d.arrival))
}

// park has a call wait for the driver and returns the answer that it chooses.
func (w *world) park(ctx context.Context, c *call) (any, error) {
	c.from = callerOutside()
	c.goOn, c.answer = make(chan struct{}), make(chan result, 1)
	c.deadline, _ = ctx.Deadline()
	w.mu.Lock()
	if w.over || c.node != nil && c.node.dead {
		w.mu.Unlock()
		return nil, errDead
	}
	w.arrivals++
	c.arrival = w.arrivals
	if !c.deadline.IsZero() && !time.Now().Before(c.deadline) {
		w.late = append(w.late, c)
	} else {
		w.calls = append(w.calls, c)
	}
	w.mu.Unlock()
	r := <-c.answer
	return r.value, r.err
}

// callerOutside names the function that called into this package.
func callerOutside() string {
	var pcs [8]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		switch {
		case strings.Contains(f.Function, "/sim.together"):
			return "together"
		case f.Function == "runtime.goexit": // all of it is ours: the membership loop
			return "beat"
		}
		if !strings.Contains(f.Function, "/sim.") {
			name := f.Function[strings.LastIndexByte(f.Function, '/')+1:]
			name, _, _ = strings.Cut(name, ".func")
			return name[strings.LastIndexByte(name, '.')+1:]
		}
		if !more {
			return "?"
		}
	}
}

// parked are the calls that wait for something, in order of their names.
func (w *world) parked() []*call {
	slices.SortFunc(w.calls, (*call).compare)
	for _, c := range w.calls {
		if !c.drawn {
			c.drawn, c.slow = true, w.one(6) || c.stage == between && w.one(2)
		}
	}
	return slices.Clone(w.calls)
}

func (w *world) drop(c *call) {
	w.calls = slices.DeleteFunc(w.calls, func(d *call) bool { return d == c })
}

// execute has the store do what the call asks for, up to the reading of owners if there is that.
func (w *world) execute(c *call) {
	w.executing = c
	before := w.model.look(c.about)
	if c.stage == between {
		c.goOn <- struct{}{}
	} else {
		go func() {
			c.value, c.err = c.do()
			c.stage = executed
		}()
	}
	synctest.Wait()
	c.drawn = c.stage != between // that is a step of its own
	w.log("execute %v%s", c, outcome(c))
	w.model.executed(c, before)
	if c.orphan && c.stage == executed {
		w.drop(c)
		if c.node != nil && c.node.dead {
			w.deafen()
		}
	}
}

// deafen is what the links notice of a broker that died: they miss its heartbeats and sweep, for longer
// than its last calls are under way.
func (w *world) deafen() {
	for _, n := range w.nodes {
		n.deaf = true
	}
}

func outcome(c *call) string {
	switch {
	case c.stage == between:
		return " (half)"
	case c.err != nil:
		return ": " + c.err.Error()
	}
	return ""
}

// owners is queue.NewMemory's: called after an append, on the goroutine of the call. It parks on both sides
// of the reading, so that the order of the two shows.
func (w *world) owners(channel string) []string {
	c := w.executing
	c.pause()
	servers, _ := w.registry.ChannelServers(context.Background(), channel)
	c.pause()
	return servers
}

func (c *call) pause() {
	c.stage = between
	<-c.goOn
}

// reply delivers the answer of an executed call.
func (w *world) reply(c *call) {
	w.log("answer %v", c)
	w.drop(c)
	c.answer <- result{c.value, c.err}
	w.settle()
}

// fail gives the caller an error instead of the answer, whether or not the call was executed.
func (w *world) fail(c *call, err error) {
	w.log("fail %v (%s): %v", c, c.stage, err)
	if c.stage == between { // half done: it is carried through, and nobody hears of it
		c.orphan = true
	} else {
		w.drop(c)
	}
	c.answer <- result{nil, err}
	w.settle()
}

// express is execute and reply at once.
func (w *world) express(c *call) {
	for c.stage != executed && !w.stopped() {
		w.execute(c)
	}
	if !c.orphan && !w.stopped() {
		w.reply(c)
	}
}

// resolve ends the time in which orphans are executed, or not.
func (w *world) resolve() {
	for _, c := range w.parked() {
		switch {
		case !c.orphan:
		case c.stage == between || w.rng.IntN(2) == 0:
			w.express(c)
		default:
			w.log("never executed: %v", c)
			w.drop(c)
		}
	}
}

// expire gives up the calls whose time is over. A paused broker finds that out later.
func (w *world) expire() {
	for _, c := range w.parked() {
		if c.orphan || c.deadline.IsZero() || time.Now().Before(c.deadline) || c.node != nil && c.node.paused {
			continue
		}
		if c.stage == waiting && w.rng.IntN(2) == 0 {
			w.execute(c)
		}
		w.fail(c, context.DeadlineExceeded)
	}
}
