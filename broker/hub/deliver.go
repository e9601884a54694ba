package hub

import (
	"runtime"

	"switchboard/broker/dialect"
	"switchboard/broker/loop"
)

// writesPerYield is how many subscribers a loop writes to before it yields the processor. That
// takes about 300 µs; the writes themselves never yield.
const writesPerYield = 64

// Run implements loop.Task: it delivers the tail to the loop's subscribers.
func (c *Channel) Run(on *loop.Loop) { c.deliver(&c.perLoop[on.Index], &c.hub.scratch[on.Index]) }

// deliver writes to each subscriber, in one write, all messages after its cursor. It skips
// subscribers whose socket is backed up. It runs on the loop. Most subscribers have the same
// cursor and share one batch. That batch is scratch, which the loop reuses: a new batch would
// escape to the heap through the Subscriber interface.
func (c *Channel) deliver(l *loopSubscribers, scratch *dialect.Batch) {
	l.woken.Store(false)
	t := c.tail.Load()
	var shared *dialect.Batch
	sharedFrom := int64(-1)
	for i, n := 0, 1; i < len(l.subs); n++ {
		if n%writesPerYield == 0 {
			runtime.Gosched()
		}
		sub := l.subs[i]
		switch {
		case sub.lagging || sub.cursor >= t.last:
		case sub.to.Backlogged():
			sub.markLagging()
		case sub.cursor == sharedFrom:
			sub.write(shared, t.last)
		default:
			// The first cursor gets the shared batch. Subscribers with another cursor catch up alone.
			messages, ok := t.after(sub.cursor)
			if !ok || sharedFrom >= 0 || countFitting(messages) < len(messages) {
				sub.catchUp()
				break
			}
			shared, sharedFrom = scratch, sub.cursor
			shared.Reset(messages)
			sub.write(shared, t.last)
		}
		if i < len(l.subs) && l.subs[i] == sub { // a failed write removes the subscription
			i++
		}
	}
	if shared != nil {
		shared.Reset(nil)
	}
}
