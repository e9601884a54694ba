package hub

import (
	"runtime"
	"slices"

	"switchboard/broker/dialect"
	"switchboard/broker/loop"
)

// writesPerYield is how many subscribers a loop writes to before it yields the processor. That
// takes about 300 µs; the writes themselves never yield.
const writesPerYield = 64

// Run implements loop.Task: it delivers the tail to the loop's subscribers.
func (c *Channel) Run(on *loop.Loop) { c.deliver(&c.perLoop[on.Index], &c.hub.scratch[on.Index]) }

// deliver writes to each subscriber all messages after its cursor. It skips subscribers whose
// socket is backed up. It runs on the loop. Most subscribers have the same cursor and share the
// batches in scratch, which the loop reuses: new batches would escape to the heap through the
// Subscriber interface. If the messages do not fit one write, all subscribers receive the first
// batches before the second ones, so that they share the second ones, too.
func (c *Channel) deliver(l *loopSubscribers, scratch *sharedBatches) {
	l.woken.Store(false)
	for t, more := c.tail.Load(), true; more; {
		more = c.deliverOnce(l, t, scratch)
		scratch.reset(-1, nil)
	}
}

// deliverOnce writes the messages after one cursor, as many as fit one write. It reports whether
// subscribers lack messages after them. shared is empty.
func (c *Channel) deliverOnce(l *loopSubscribers, t *tail, shared *sharedBatches) (more bool) {
	for i, n := 0, 1; i < len(l.subs); n++ {
		if n%writesPerYield == 0 {
			runtime.Gosched()
		}
		sub := l.subs[i]
		switch {
		case sub.is(lagging) || sub.cursor >= t.last:
		case sub.to.Backlogged():
			sub.markLagging()
		case sub.cursor == shared.from && int(sub.filter) == shared.filter:
			sub.write(shared.batch, shared.last)
		case sub.showsState() && sub.cursor < t.lastMarker:
			sub.catchUp() // a gap, and new pages
		case sub.cursor == shared.from:
			shared.writeTo(sub, t)
		case shared.from >= 0 || !shared.fill(t, sub.cursor):
			// The first cursor gets the shared batches. Subscribers with another cursor catch up alone.
			sub.catchUp()
		default:
			more = shared.last < t.last
			shared.writeTo(sub, t)
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
	from     int64         // the cursor, or -1 for none
	last     int64         // the id of the last message
	plain    dialect.Batch // for subscribers that receive the messages as they are
	shown    []shownBatch  // for the others
	excluded []string      // the clients that messages exclude

	// batch is for all subscribers with filter, which is that of the last subscriber, or -1: most
	// often the next one has the same.
	batch  *dialect.Batch
	filter int
}

// shownBatch is what the subscribers with one filter receive.
type shownBatch struct {
	filter uint8 // Subscription.filter
	batch  dialect.Batch
}

// keptBatches is for how many filters a loop keeps the space of the batches.
const keptBatches = 4

// reset replaces the messages. It keeps no reference to the old ones, but the space for them.
func (b *sharedBatches) reset(from int64, messages []*dialect.Message) {
	b.from, b.last, b.batch, b.filter = from, 0, nil, -1
	if n := len(messages); n > 0 {
		b.last = messages[n-1].ID
	}
	b.plain.Reset(messages)
	clear(b.excluded)
	b.excluded = b.excluded[:0]
	for i := range b.shown {
		list := b.shown[i].batch.Messages
		clear(list)
		b.shown[i].batch.Reset(list[:0])
	}
	if b.shown = b.shown[:0]; cap(b.shown) > keptBatches {
		b.shown = nil
	}
}

// fill replaces the messages by those of the tail t after a cursor, as many as fit one write. ok is
// false if t does not reach back to the cursor.
func (b *sharedBatches) fill(t *tail, cursor int64) (ok bool) {
	messages, ok := t.after(cursor)
	if !ok {
		return false
	}
	b.reset(cursor, messages[:countFitting(messages)])
	if t.kinds&excluding != 0 {
		b.noteExcluded()
	}
	return true
}

// noteExcluded notes which clients the messages exclude.
func (b *sharedBatches) noteExcluded() {
	for _, m := range b.plain.Messages {
		if m.Envelope != nil && m.Envelope.Exclude != "" && !slices.Contains(b.excluded, m.Envelope.Exclude) {
			b.excluded = append(b.excluded, m.Envelope.Exclude)
		}
	}
}

// writeTo writes the messages, which are of the tail t, to a subscriber whose cursor is b.from.
func (b *sharedBatches) writeTo(sub *Subscription, t *tail) {
	switch {
	case len(b.excluded) > 0 && slices.Contains(b.excluded, sub.to.ClientID()):
		shown := sub.Channel.appendShown(nil, b.plain.Messages, sub.filter, sub.to.ClientID())
		sub.writeAny(&dialect.Batch{Messages: shown}, b.last)
		return
	case t.kinds&hiddenBy(sub.filter) == 0:
		b.batch = &b.plain
	default:
		b.batch = b.shownTo(sub)
	}
	if b.filter = -1; len(b.excluded) == 0 && len(b.batch.Messages) > 0 {
		b.filter = int(sub.filter)
	}
	sub.writeAny(b.batch, b.last)
}

// shownTo returns the messages as a subscriber receives them that does not see all of each, or also
// sees changes of the state.
func (b *sharedBatches) shownTo(sub *Subscription) *dialect.Batch {
	i := slices.IndexFunc(b.shown, func(s shownBatch) bool { return s.filter == sub.filter })
	if i < 0 {
		if i = len(b.shown); i < cap(b.shown) {
			b.shown = b.shown[:i+1]
		} else {
			b.shown = append(b.shown, shownBatch{})
		}
		s := &b.shown[i]
		s.filter, s.batch.Messages = sub.filter, sub.Channel.appendShown(s.batch.Messages, b.plain.Messages, sub.filter, "")
	}
	return &b.shown[i].batch
}
