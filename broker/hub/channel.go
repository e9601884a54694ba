package hub

import (
	"sync"
	"sync/atomic"
	"time"

	"switchboard/broker/dialect"
	"switchboard/internal/state"
	"switchboard/queue"
)

// maxEarly bounds the messages of a channel that wait for their predecessor.
const maxEarly = 64

// Channel is a channel with subscribers on this server.
type Channel struct {
	Name string
	hub  *Hub

	refs int // guarded by hub.mu: subscriptions, including those that are being prepared

	// bindLock is held during each binding and unbinding, so that two of them never overlap. It is a
	// Go channel of one slot because it is held over store calls: testing/synctest treats a goroutine
	// that waits for it as idle, which it does not do for a mutex.
	bindLock   chan struct{}
	mayBeBound bool // guarded by bindLock: the registry may have this server as an owner
	restored   bool // guarded by bindLock: a call that failed may have restored a lost binding, see Rebind
	bound      atomic.Bool

	tail atomic.Pointer[tail] // read by all goroutines, replaced under mu

	mu            sync.Mutex             // guards the fields below
	missed        bool                   // a hint arrived while the channel was not bound
	boundAt       uint32                 // when it was bound, in seconds since hub.began
	early         map[int64]earlyMessage // messages that arrived before their predecessor, by the predecessor's id
	dirty         bool                   // the store may hold more than the tail
	draining      bool                   // a drain is queued or running
	tailListed    bool                   // listed in hub.filledTails
	emptyAt       int64                  // the store held no message when this was the last id
	drainQueuedAt time.Time
	follower      Follower // nil for none
	followerAhead int64    // the id at which it began, until the tail reaches it; 0 afterwards
	filterRefs    []int32  // subscriptions by index in filters

	// filters are what subscribers see besides the data of messages, by Subscription.filter. They are
	// replaced under mu; nil while no subscriber sees the state.
	filters          atomic.Pointer[[]state.Filter]
	stateSubscribers atomic.Int32  // subscriptions that see the state
	changes          atomic.Uint32 // entries with changes that were decoded
	excluded         atomic.Uint32 // entries with an excluded client that were decoded

	perLoop []loopSubscribers // by loop.Index
}

// earlyMessage is a message that waits for its predecessor.
type earlyMessage struct {
	id      int64
	data    []byte
	decoded state.Message // see HintMessage
}

// loopSubscribers holds the channel's subscribers on one event loop. Other goroutines touch only
// count and woken.
type loopSubscribers struct {
	subs  []*Subscription
	count atomic.Int32
	woken atomic.Bool // a wake task is posted and has not started
}

// lockBinding locks bindLock and returns the function that unlocks it.
func (c *Channel) lockBinding() (unlock func()) {
	c.bindLock <- struct{}{}
	return func() { <-c.bindLock }
}

// Hint reports that message id follows message prev in the channel's queue. If data is nil, the
// message is read from the store.
func (c *Channel) Hint(id, prev int64, data []byte) { c.HintMessage(id, prev, data, state.Message{}) }

// HintMessage is Hint for data that this process has encoded: it need not be decoded. decoded is
// the message in data. If its Data is nil, it is not known.
func (c *Channel) HintMessage(id, prev int64, data []byte, decoded state.Message) {
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
		c.extendLocked(t, []*dialect.Message{c.hinted(id, data, decoded)})
	case len(c.early) < maxEarly:
		// Hints often arrive out of order: one round trip to the store answers many callers, and each
		// caller sends its hints from its own goroutine. drain checks c.early again before it reads
		// the store.
		if c.early == nil {
			c.early = make(map[int64]earlyMessage)
		}
		c.early[prev] = earlyMessage{id, data, decoded}
		c.queueDrainLocked()
	default:
		c.markDirtyLocked()
	}
}

// extendLocked replaces the tail by t with more appended, and wakes the loops. It also appends the
// early messages that now follow the last one.
func (c *Channel) extendLocked(t *tail, more []*dialect.Message) {
	last := t.last
	if len(more) > 0 {
		last = more[len(more)-1].ID
	}
	for e, ok := c.early[last]; ok; e, ok = c.early[last] {
		more = append(more, c.hinted(e.id, e.data, e.decoded))
		last = e.id
	}
	for prev := range c.early {
		if prev < last {
			delete(c.early, prev)
		}
	}
	c.appendToFollowerLocked(more) // before a subscription begins after these messages
	next := t.extend(more)
	c.setTailLocked(next)
	if next.kinds&changing != 0 && c.hub.opts.Changed != nil {
		c.reportChanges(more)
	}
	c.moveWatches()
	c.wake()
}

// reportChanges calls Options.Changed.
func (c *Channel) reportChanges(more []*dialect.Message) {
	for _, m := range more {
		if m.Changes != nil {
			c.hub.opts.Changed(c.Name, m.Changes.Entry)
		}
	}
}

// MarkDirty reports that the store may hold messages that the tail does not. It starts a drain.
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
		c.draining, c.drainQueuedAt = true, time.Now()
		c.hub.opts.Pool.Go(c.drain)
	}
}

// drain reads the page after the tail from the store. If there are more messages, or the channel
// became dirty again, drain queues itself at the end of the pool's queue.
func (c *Channel) drain() {
	c.mu.Lock()
	c.draining = c.dirty || len(c.early) > 0
	if !c.draining { // the missing predecessor arrived as a hint
		c.mu.Unlock()
		return
	}
	c.dirty, c.early = false, nil // the read includes the early messages: they were stored before their hints
	from := c.tail.Load()
	c.mu.Unlock()

	ctx := c.hub.context()
	page, err := c.hub.opts.Queue.ReadChannel(ctx, c.Name, from.last, pageSize)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = false
	if err != nil {
		c.hub.opts.Logger.Warn().Err(err).Msg("drain failed; a later tick tries again")
		c.hub.drains.Failed(c.Name)
		return
	}
	c.hub.drains.Done(c.Name)
	c.hub.clock.set(page.Clock)
	c.applyPageLocked(from, page)
	c.hub.opts.Drained(time.Since(c.drainQueuedAt))
	if c.dirty || page.More || len(c.early) > 0 {
		c.markDirtyLocked()
	}
}

// applyPageLocked appends a page to the tail. from was the tail when the read began, and the page
// follows its last message.
func (c *Channel) applyPageLocked(from *tail, page queue.Page) {
	now := c.tail.Load()
	if !page.Complete {
		if now.last != from.last {
			c.dirty = true // hints extended the tail meanwhile: read again from its new end
			return
		}
		// The store does not know the end of the tail: it was trimmed, or the store lost its last
		// writes. Start again where the store says. Each subscriber detects its own gap in catchUp.
		c.loseFollowerLocked()
		if c.hub.opts.Changed != nil {
			c.hub.opts.Changed(c.Name, nil)
		}
		now = &tail{base: page.From, last: page.From, lastMarker: page.LastMarker}
		if from.last > page.Floor {
			c.hub.opts.Lost(c.Name, from.last)
		}
	}
	var more []*dialect.Message
	for _, m := range page.Messages {
		if m.ID > now.last {
			more = append(more, c.message(m.ID, m.Data))
		}
	}
	if len(more) > 0 || !page.Complete {
		c.extendLocked(now, more)
	}
	if !page.Complete {
		c.rereadSubscribersAhead()
	}
}

// prependToTail adds a page to the front of the tail if it reaches the tail's first message. after
// is the id before the page. Later subscribers that resume from there need no read: when many
// clients reconnect at once, only the first ones read the store.
func (c *Channel) prependToTail(after int64, p page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tail.Load()
	for i, m := range p.messages {
		if m.ID == t.base {
			if next, ok := t.prepend(after, p.messages[:i+1]); ok {
				next.lastMarker = max(t.lastMarker, p.lastMarker)
				c.setTailLocked(next)
			}
			return
		}
	}
}

// rereadSubscribersAhead makes subscribers whose cursor is after the end of the tail read the
// store now. They receive their gap at once, and not only when the next message arrives.
func (c *Channel) rereadSubscribersAhead() {
	for i := range c.perLoop {
		l := &c.perLoop[i]
		if l.count.Load() == 0 {
			continue
		}
		c.hub.opts.Loops[i].Post(func() {
			for _, sub := range l.subs {
				if !sub.is(lagging) && sub.cursor > c.tail.Load().last {
					sub.markLagging()
					sub.read()
				}
			}
		})
	}
}

// wake posts a task to each loop that has subscribers and no such task yet.
func (c *Channel) wake() {
	for i := range c.perLoop {
		l := &c.perLoop[i]
		if l.count.Load() > 0 && l.woken.CompareAndSwap(false, true) {
			c.hub.opts.Loops[i].PostTask(c)
		}
	}
}
