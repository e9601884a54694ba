package linear

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"switchboard/internal/replay"
	"switchboard/internal/state"
	"switchboard/queue"
)

// ownedFields are the names that clients also use in workloads with owners. A part/1… is usually a
// part of member/1.
var ownedFields = []string{"member/1", "member/1", "member/2", "member/3", "part/1a", "part/1b", "part/2a"}

// addOwner makes an operation concern the owners or the parent of its field.
func (c *client) addOwner(op *state.Op) {
	if part, is := strings.CutPrefix(op.Field, "part/"); is && !c.oneIn(6) {
		op.Parent, op.HeldParent = "member/"+part[:1], !c.oneIn(4)
	} else if c.oneIn(30) {
		op.Parent = pick(c, ownedFields...)
	}
	if op.Kind == state.Delete || !c.oneIn(2) {
		return
	}
	op.Own = pick(c, state.Own, state.Own, state.Own, state.Disown)
	op.Grace = pick(c, 0, state.GraceNever, time.Duration(1+c.Int64N(c.lease.Milliseconds()))*time.Millisecond)
}

// stepOwner ends or resumes the connection of this client, or ends its server. A step without an
// answer is repeated. The next connection has a higher generation, as that of a broker.
func (c *client) stepOwner() {
	kind := pick(c, queue.OwnerEnded, queue.OwnerEnded, queue.OwnerUnsubscribed, queue.OwnerBack, queue.OwnerBack, queue.ServerEnded)
	if kind == queue.OwnerBack && c.oneIn(2) {
		c.reconnect()
	}
	for !c.take(queue.StateStep{Channel: channel, Kind: kind, Conn: c.conn}) && c.ctx.Err() == nil {
		c.awaitStore()
	}
	if kind == queue.OwnerEnded || kind == queue.OwnerUnsubscribed {
		c.conn.Generation++
	}
}

// reconnect gives the client a new generation, or another server with the same one.
func (c *client) reconnect() {
	if c.oneIn(2) {
		c.conn.Generation++
	} else {
		c.conn.Server = fmt.Sprint("s", c.IntN(3))
	}
}

// take makes a step, and reports whether it was answered.
func (c *client) take(step queue.StateStep) bool {
	p := &call{client: c.index, kind: ownerStep, step: step}
	c.begin(p)
	o := c.local.StepStates(c.ctx, []queue.StateStep{step})[0]
	stale := errors.Is(o.Err, queue.ErrStale)
	if o.Err != nil && !stale {
		c.failed(o.Err)
		return false
	}
	c.end(p, func() { p.appended, p.stale = o.Value, stale })
	if stale {
		c.conn.Generation++
	}
	return true
}

// openSteps returns the calls with steps that were not answered, and these steps. Each of them may
// have happened, and may have appended an entry.
func (h *history) openSteps() (calls []*call, steps [][]queue.StateStep) {
	for _, c := range h.calls {
		if c.kind == ownerStep && !c.answered() {
			c.optional, c.end = true, h.position+1
			calls = append(calls, c)
			steps = append(steps, []queue.StateStep{c.step})
		}
	}
	return calls, steps
}

// guessSteps returns, for each entry about owners, the steps that may have made it. The clients of
// brokers make no steps. Each field has one owner at most.
func guessSteps(log []logged) map[int64][][]queue.StateStep {
	guesses := make(map[int64][][]queue.StateStep)
	replay.Each(entriesOf(log), func(e replay.Entry, before, _ map[string]state.Shown) {
		if e.Changes == nil {
			return
		}
		var ended, back []queue.StateStep
		step := func(kind queue.StepKind, name string) (steps []queue.StateStep) {
			for _, owner := range before[name].Owners {
				conn := state.Connection{Client: owner, Generation: unknownGeneration}
				steps = append(steps, queue.StateStep{Channel: channel, Kind: kind, Conn: conn})
			}
			return steps
		}
		for name := range e.Changes.Away {
			ended = append(ended, step(queue.OwnerEnded, name)...)
		}
		for _, name := range e.Changes.Back {
			back = append(back, step(queue.OwnerBack, name)...)
		}
		guesses[e.ID] = [][]queue.StateStep{ended, back}
	})
	return guesses
}

// complete completes the answer of a broker by what the log shows. A socket does not report that a
// key is repeated: the id is then that of an earlier call.
func (c *call) complete(entries, unclaimed map[int64]logged) {
	if c.appended.ID == 0 || c.appended.Duplicate {
		return
	}
	l := entries[c.appended.ID]
	if l.number != c.number {
		return
	}
	c.appended.Prev, c.appended.Data = l.Prev, l.Data
	if _, isFirst := unclaimed[l.ID]; !isFirst && c.push.Key != "" {
		c.appended.Duplicate = true
	}
}
