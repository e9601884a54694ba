package hub

import (
	"sync"
	"sync/atomic"
	"time"

	"switchboard/queue"
)

// maxEarly bounds how many messages wait for the one in front of them.
const maxEarly = 64

// Channel is one channel with subscribers on this server.
type Channel struct {
	Name string
	hub  *Hub

	refs int // guarded by hub.mu: subscriptions, and whoever is about to subscribe

	// binding has a place for one: who binds or unbinds, so that neither overtakes the other. It is no
	// mutex because it is held over store calls: testing/synctest sees through the wait for it.
	bindLock   chan struct{}
	mayBeBound bool // guarded by binding: the registry may have us as a holder
	bound      atomic.Bool

	tail atomic.Pointer[tail] // read by all, replaced under mu

	mu         sync.Mutex             // guards the fields below
	missed     bool                   // something was told of the channel while it was not bound
	early      map[int64]earlyMessage // by the id in front: came before it did
	dirty      bool                   // the store may hold more than the tail
	draining   bool                   // a drainer is queued or running
	tailListed bool                   // in hub.warm
	dirtySince time.Time              // when it was queued

	perLoop []loopSubscribers // by loop.Index
}

type earlyMessage struct {
	id   int64
	data []byte
}

// local is what one event loop knows of the channel. Only count and woken are touched
// from elsewhere.
type loopSubscribers struct {
	subs  []*Subscription
	count atomic.Int32
	woken atomic.Bool // a wake task is posted and has not begun
}

// bindingTurn waits for the place in binding.
func (c *Channel) lockBinding() (done func()) {
	c.bindLock <- struct{}{}
	return func() { <-c.bindLock }
}

// Hint tells that message id follows prev in the channel's queue. data may be nil: then
// the store is read.
func (c *Channel) Hint(id, prev int64, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tail.Load()
	switch {
	case !c.bound.Load():
		c.missed = true
	case id <= t.last: // repeated or late
	case data == nil:
		c.markDirtyLocked()
	case prev == t.last:
		c.extendLocked(t, []entry{newEntry(c.Name, id, data)})
	case len(c.early) < maxEarly:
		// Answers of one round trip are handed out to many goroutines, so neighbours
		// often change places. The drainer looks again before it reads.
		if c.early == nil {
			c.early = make(map[int64]earlyMessage)
		}
		c.early[prev] = earlyMessage{id, data}
		c.queueDrainLocked()
	default:
		c.markDirtyLocked()
	}
}

// extendLocked makes t, with more behind it and whatever early message follows then,
// the tail, and wakes the loops.
func (c *Channel) extendLocked(t *tail, more []entry) {
	last := t.last
	if len(more) > 0 {
		last = more[len(more)-1].id
	}
	for e, ok := c.early[last]; ok; e, ok = c.early[last] {
		more = append(more, newEntry(c.Name, e.id, e.data))
		last = e.id
	}
	for prev := range c.early {
		if prev < last {
			delete(c.early, prev)
		}
	}
	c.setTailLocked(t.extend(more))
	c.wake()
}

// MarkDirty says that the store may hold more than the tail.
func (c *Channel) MarkDirty() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.markDirtyLocked()
}

func (c *Channel) markDirtyLocked() {
	if !c.bound.Load() {
		c.missed = true
		return
	}
	c.dirty = true
	c.queueDrainLocked()
}

func (c *Channel) queueDrainLocked() {
	if !c.draining {
		c.draining, c.dirtySince = true, time.Now()
		c.hub.opts.Pool.Go(c.drain)
	}
}

// drain reads one page behind the tail. If there is more, or the channel became dirty
// meanwhile, it queues itself again behind all other work.
func (c *Channel) drain() {
	c.mu.Lock()
	c.draining = c.dirty || len(c.early) > 0
	if !c.draining { // the missing message came by itself
		c.mu.Unlock()
		return
	}
	c.dirty, c.early = false, nil // all stored before this read, so it brings them
	from := c.tail.Load()
	c.mu.Unlock()

	ctx, cancel := c.hub.context()
	defer cancel()
	page, err := c.hub.opts.Queue.ReadChannel(ctx, c.Name, from.last, pageSize)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = false
	if err != nil {
		c.hub.opts.Logger.Warn().Err(err).Msg("drain failed; the next sweep tries again")
		c.hub.drainFailed.Store(true)
		return
	}
	c.hub.clock.set(page.Clock)
	c.applyPageLocked(from, page)
	c.hub.opts.Drained(time.Since(c.dirtySince))
	if c.dirty || page.More || len(c.early) > 0 {
		c.markDirtyLocked()
	}
}

// adoptLocked puts a page that was read behind from into the tail.
func (c *Channel) applyPageLocked(from *tail, page queue.Page) {
	now := c.tail.Load()
	if !page.Complete {
		if now.last != from.last {
			c.dirty = true // hints went on from there meanwhile: look again from the new end
			return
		}
		// The tail's end is unknown to the store: trimmed away, or its last writes were lost.
		// Start over where the store says; each subscriber finds its own gap when it follows.
		now = &tail{base: page.From, last: page.From, hole: page.Hole}
		if from.last > page.Floor {
			c.hub.opts.Lost(c.Name, from.last)
		}
	}
	var more []entry
	for _, m := range page.Messages {
		if m.ID > now.last {
			more = append(more, newEntry(c.Name, m.ID, m.Data))
		}
	}
	if len(more) > 0 || !page.Complete {
		c.extendLocked(now, more)
	}
	if !page.Complete {
		c.rereadAhead()
	}
}

// reachBack puts what was read behind after in front of the tail, if the two meet: whoever
// resumes from there needs the store no more. Of a crowd that comes back at once only the first ask it.
func (c *Channel) prependToTail(after int64, p page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tail.Load()
	for i, e := range p.entries {
		if e.id == t.base {
			if next, ok := t.prepend(after, p.entries[:i+1]); ok {
				next.hole = max(t.hole, p.hole)
				c.setTailLocked(next)
			}
			return
		}
	}
}

// recheck has those subscribers read the store that have seen more than there is: they learn by a gap
// that they start over, and not only when something new comes.
func (c *Channel) rereadAhead() {
	for i := range c.perLoop {
		l := &c.perLoop[i]
		if l.count.Load() == 0 {
			continue
		}
		c.hub.opts.Loops[i].Post(func() {
			for _, sub := range l.subs {
				if !sub.lagging && sub.cursor > c.tail.Load().last {
					sub.markLagging()
					sub.read()
				}
			}
		})
	}
}

// wake posts one task to every loop that has subscribers and no such task yet.
func (c *Channel) wake() {
	for i := range c.perLoop {
		l := &c.perLoop[i]
		if l.count.Load() > 0 && l.woken.CompareAndSwap(false, true) {
			c.hub.opts.Loops[i].Give(c)
		}
	}
}
