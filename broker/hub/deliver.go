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

// deliver writes to each subscriber all messages after its cursor. It skips subscribers whose
// socket is backed up. It runs on the loop. Most subscribers have the same cursor and share one
// batch. That batch is scratch, which the loop reuses: a new batch would escape to the heap through
// the Subscriber interface. If the messages do not fit one write, all subscribers receive the first
// batch before the second one, so that they share the second one, too.
func (c *Channel) deliver(l *loopSubscribers, scratch *dialect.Batch) {
	l.woken.Store(false)
	for t, more := c.tail.Load(), true; more; {
		more = c.deliverOnce(l, t, scratch)
		scratch.Reset(nil)
	}
}

// deliverOnce writes one shared batch. It reports whether subscribers lack messages after it.
func (c *Channel) deliverOnce(l *loopSubscribers, t *tail, scratch *dialect.Batch) (more bool) {
	shared := sharedBatches{channel: c, changes: t.changes, from: -1, batch: scratch}
	for i, n := 0, 1; i < len(l.subs); n++ {
		if n%writesPerYield == 0 {
			runtime.Gosched()
		}
		sub := l.subs[i]
		switch {
		case sub.is(lagging) || sub.cursor >= t.last:
		case sub.to.Backlogged():
			sub.markLagging()
		case sub.cursor == shared.from && sub.filter == 0:
			sub.write(scratch, shared.last)
		case sub.filter != 0 && sub.cursor < t.lastMarker:
			sub.catchUp() // a gap, and new pages
		case sub.cursor == shared.from:
			shared.writeTo(sub)
		default:
			// The first cursor gets the shared batch. Subscribers with another cursor catch up alone.
			messages, ok := t.after(sub.cursor)
			if !ok || shared.from >= 0 {
				sub.catchUp()
				break
			}
			n := countFitting(messages)
			more = n < len(messages)
			shared.from, shared.last = sub.cursor, messages[n-1].ID
			scratch.Reset(messages[:n])
			shared.writeTo(sub)
		}
		if i < len(l.subs) && l.subs[i] == sub { // a failed write removes the subscription
			i++
		}
	}
	return more
}

// sharedBatches are the messages of a tail after one cursor, as the subscribers of a loop receive
// them.
type sharedBatches struct {
	channel *Channel
	changes bool                     // some messages may have Changes
	from    int64                    // the cursor, or -1
	last    int64                    // the id of the last message
	batch   *dialect.Batch           // for subscribers that do not see the state
	shown   map[uint8]*dialect.Batch // for the others, by Subscription.filter; made if there are changes
}

// writeTo writes the messages to a subscriber whose cursor is b.from.
func (b *sharedBatches) writeTo(sub *Subscription) {
	if sub.filter == 0 || !b.changes {
		sub.write(b.batch, b.last)
		return
	}
	shown := b.shown[sub.filter]
	if shown == nil {
		shown = &dialect.Batch{Messages: b.channel.shown(b.batch.Messages, sub.filter)}
		if b.shown == nil {
			b.shown = make(map[uint8]*dialect.Batch)
		}
		b.shown[sub.filter] = shown
	}
	sub.writeAny(shown, b.last)
}
