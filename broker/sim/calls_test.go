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
	errDead = errors.New("sim: the process has ended")
)

// stage is the state of a store call.
type stage uint8

const (
	waiting      stage = iota // sent, not executed
	halfExecuted              // paused before or after it reads the owners
	executed                  // the answer is being sent
)

func (s stage) String() string { return [...]string{"waiting", "half executed", "executed"}[s] }

// call is a call of a store that is in progress.
type call struct {
	node         *node  // the calling server; nil for the janitor
	caller       string // the name of the server, or "janitor"
	op, function string // the store's method, and the function that called it
	subject      subject
	args         string
	order        int // tells apart calls that are otherwise equal
	began        time.Time
	deadline     time.Time

	stage     stage
	slow      bool // other calls overtake this one
	slowDrawn bool // parked has drawn whether the call is slow
	orphan    bool // the caller no longer waits for the answer
	do        func() (any, error)
	proceed   chan struct{} // ends the stage halfExecuted
	answer    chan result
	value     any
	err       error
}

// subject is the queue or registry entry that a call reads or changes.
type subject struct {
	channel, client, user string
	server                string // the server in a call of the registry, which rejects dead servers
	owner                 string // the server in a call of the queue, which does not know dead servers
	generation            int64  // of the caller; 0 if the call has none
}

type result struct {
	value any
	err   error
}

func (c *call) String() string {
	return fmt.Sprintf("%s %s: %s %s", c.caller, c.function, c.op, c.args)
}

// compare orders calls by their names, so that the order does not depend on the scheduler.
func (c *call) compare(d *call) int {
	return cmp.Or(strings.Compare(c.caller, d.caller), strings.Compare(c.op, d.op), strings.Compare(c.args, d.args),
		strings.Compare(c.function, d.function), cmp.Compare(c.order, d.order))
}

// park waits until the driver answers the call, and returns the answer.
func (w *world) park(ctx context.Context, c *call) (any, error) {
	c.function = callerFunction()
	c.proceed, c.answer = make(chan struct{}), make(chan result, 1)
	c.began = time.Now()
	c.deadline, _ = ctx.Deadline()
	w.mu.Lock()
	if w.ended || c.node != nil && c.node.dead {
		w.mu.Unlock()
		return nil, errDead
	}
	w.callCount++
	c.order = w.callCount
	if !c.deadline.IsZero() && !time.Now().Before(c.deadline) {
		w.expired = append(w.expired, c)
	} else {
		w.calls = append(w.calls, c)
	}
	w.mu.Unlock()
	r := <-c.answer
	return r.value, r.err
}

// callerFunction returns the name of the function that called into this package.
func callerFunction() string {
	var pcs [8]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		switch {
		case strings.Contains(f.Function, "/sim.concurrently"):
			return "concurrently"
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

// parked returns the calls that are in progress, sorted. It draws which of the new ones are slow.
func (w *world) parked() []*call {
	w.mu.Lock() // a timer that fires in the driver's next sleep may add a call
	defer w.mu.Unlock()
	slices.SortFunc(w.calls, (*call).compare)
	for _, c := range w.calls {
		if !c.slowDrawn {
			c.slowDrawn, c.slow = true, w.oneIn(6) || c.stage == halfExecuted && w.oneIn(2)
		}
	}
	return slices.Clone(w.calls)
}

// removeCall removes a call that has ended.
func (w *world) removeCall(c *call) {
	w.calls = slices.DeleteFunc(w.calls, func(d *call) bool { return d == c })
}

// execute executes the call, or its next part: a call that reads owners pauses before and after it
// reads them.
func (w *world) execute(c *call) {
	w.executing = c
	before := w.model.readRecord(c.subject)
	if c.stage == halfExecuted {
		c.proceed <- struct{}{}
	} else {
		go func() {
			c.value, c.err = c.do()
			c.stage = executed
		}()
	}
	synctest.Wait()
	c.slowDrawn = c.stage != halfExecuted // parked draws again for the rest of the call
	w.log("execute %v%s", c, outcome(c))
	w.model.checkExecuted(c, before)
	if c.orphan && c.stage == executed {
		w.removeCall(c)
	}
}

func outcome(c *call) string {
	switch {
	case c.stage == halfExecuted:
		return " (half)"
	case c.err != nil:
		return ": " + c.err.Error()
	}
	return ""
}

// owners is the callback of queue.NewMemory that reads a channel's owners after an append, on the
// goroutine of the call. It pauses before and after it reads them, so that other steps come in
// between.
func (w *world) owners(channel string) []string {
	c := w.executing
	c.pause()
	servers, _ := w.registry.ChannelServers(context.Background(), channel)
	c.pause()
	return servers
}

// pause stops the call half executed, until the driver continues it.
func (c *call) pause() {
	c.stage = halfExecuted
	<-c.proceed
}

// answer delivers the answer of an executed call.
func (w *world) answer(c *call) {
	w.log("answer %v", c)
	w.removeCall(c)
	c.answer <- result{c.value, c.err}
	w.settle()
}

// fail returns an error to the caller, whether or not the call was executed.
func (w *world) fail(c *call, err error) {
	w.log("fail %v (%s): %v", c, c.stage, err)
	mayBeLate := c.op == "Bind" || c.op == "UpdateChannel" && !strings.Contains(c.args, owning)
	late := c.stage == waiting && mayBeLate && w.oneIn(2)
	if c.stage == halfExecuted || late { // it continues without a caller
		c.orphan = true
	} else {
		w.removeCall(c)
	}
	c.answer <- result{nil, err}
	w.settle()
}

// executeAndAnswer executes the call and delivers its answer.
func (w *world) executeAndAnswer(c *call) {
	for c.stage != executed && !w.failed() {
		w.execute(c)
	}
	if !c.orphan && !w.failed() {
		w.answer(c)
	}
}

// settleOrphans executes each orphan or drops it for good. A bind of a running broker may take
// longer.
func (w *world) settleOrphans() {
	for _, c := range w.parked() {
		switch {
		case !c.orphan || c.op == "Bind" && !c.node.dead && !w.oneIn(6):
		case c.stage == halfExecuted || w.rng.IntN(2) == 0:
			w.executeAndAnswer(c)
		default:
			w.log("never executed: %v", c)
			w.removeCall(c)
		}
	}
}

// failExpired fails the calls whose deadline has passed. A frozen broker detects that later.
func (w *world) failExpired() {
	for _, c := range w.parked() {
		if c.orphan || c.deadline.IsZero() || time.Now().Before(c.deadline) || c.node != nil && c.node.frozen {
			continue
		}
		if c.stage == waiting && w.rng.IntN(2) == 0 {
			w.execute(c)
		}
		w.fail(c, context.DeadlineExceeded)
	}
}
