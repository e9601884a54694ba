package hub

import (
	"strconv"

	"switchboard/internal/wire"
	"switchboard/queue"
)

// pageSize is how many messages one read of the store brings.
const pageSize = 128

// Subscriber is the connection behind a subscription. All methods are called on its loop.
type Subscriber interface {
	// Backlogged says that an earlier write has not gone out wholly.
	Backlogged() bool
	// Write sends a batch, which is not kept. It may close the connection.
	Write(b *wire.Batch)
	// Gap tells the client that what lies between after and id is gone.
	Gap(channel string, after, id int64)
}

// Subscription is one subscriber's place in one channel: a cursor and nothing else.
// It belongs to the subscriber's loop. Its 40 bytes are meant to lie within those of the subscriber: an object
// of its own, among others that soon die, costs more than its size.
type Subscription struct {
	Channel *Channel
	to      Subscriber
	cursor  int64  // the last id that was written, or skipped as a declared gap
	index   int32  // in the loop's list; ended for none
	loop    uint16 // loop.Index
	lagging bool   // not served by deliver: its socket is backed up, or it reads from the store
	reading bool   // a read of the store is under way
}

// ended is the index of a subscription that is over.
const ended = -1

// Active says whether s has begun and is not over.
func (s *Subscription) Active() bool { return s.Channel != nil && s.index != ended }

// Reusable says whether s may be used for another subscription: nothing refers to it.
func (s *Subscription) Reusable() bool { return !s.Active() && !s.reading }

func (s *Subscription) writeTo(b *wire.Batch, last int64) {
	s.cursor = last
	s.to.Write(b)
}

// lag takes s out of the common delivery until its socket is writable again.
func (s *Subscription) markLagging() {
	if !s.lagging {
		s.lagging = true
		l := &s.Channel.hub.lagging[s.loop]
		l.list[s] = struct{}{}
		l.count.Store(int32(len(l.list)))
	}
}

func (s *Subscription) clearLagging() {
	s.lagging = false
	l := &s.Channel.hub.lagging[s.loop]
	delete(l.list, s)
	l.count.Store(int32(len(l.list)))
}

// Resume continues a lagging subscription: the socket is writable, or the store is back.
func (s *Subscription) Resume() {
	if s.lagging && !s.reading {
		s.catchUp()
	}
}

// follow writes what lies behind the cursor: from the tail, else from the store.
func (s *Subscription) catchUp() {
	for s.Active() {
		if s.to.Backlogged() {
			s.markLagging()
			return
		}
		entries, ok := s.Channel.tail.Load().after(s.cursor)
		if !ok {
			s.markLagging()
			s.read()
			return
		}
		if len(entries) == 0 {
			s.clearLagging()
			return
		}
		s.writeOnce(entries)
	}
}

// writeSome writes as many entries as fit one write call and returns the rest.
func (s *Subscription) writeOnce(entries []entry) []entry {
	n := countFitting(entries)
	batch := batchOf(entries[:n])
	s.writeTo(&batch, entries[n-1].id)
	return entries[n:]
}

// fitting is how many entries fit one write call, at least one.
func countFitting(entries []entry) int {
	return wire.Fitting(entries, func(e entry) int { return e.frame.Size() })
}

// page is a read of the store, encoded.
type page struct {
	entries  []entry
	from     int64
	hole     int64
	complete bool
}

// read fetches the page behind the cursor. Subscribers at the same place, as after the
// fall of another server, share one read.
func (s *Subscription) read() {
	if s.reading {
		return
	}
	s.reading = true
	c, cursor, end := s.Channel, s.cursor, s.Channel.tail.Load().last
	c.hub.opts.Pool.Go(func() {
		p, err := c.pageAfter(cursor)
		c.hub.opts.Loops[s.loop].Post(func() {
			s.reading = false
			if err == nil && s.Active() {
				s.applyPage(p, end)
			} // after an error the hub's tick resumes whoever lags
		})
	})
}

func (c *Channel) pageAfter(cursor int64) (page, error) {
	key := c.Name + " " + strconv.FormatInt(cursor, 10)
	v, err, _ := c.hub.pageReads.Do(key, func() (any, error) {
		ctx, cancel := c.hub.context()
		defer cancel()
		p, err := c.hub.opts.Queue.ReadChannel(ctx, c.Name, cursor, pageSize)
		return encodePage(c.Name, p), err
	})
	return v.(page), err
}

func encodePage(channel string, p queue.Page) page {
	encoded := page{from: p.From, hole: p.Hole, complete: p.Complete}
	for _, m := range p.Messages {
		encoded.entries = append(encoded.entries, newEntry(channel, m.ID, m.Data))
	}
	return encoded
}

// adopt writes a page that was read behind the cursor. end is where the tail ended when that read began.
func (s *Subscription) applyPage(p page, end int64) {
	if !p.complete {
		s.to.Gap(s.Channel.Name, s.cursor, p.from)
		s.cursor = p.from
	}
	nothing := p.complete && len(p.entries) == 0
	for len(p.entries) > 0 && s.Active() && !s.to.Backlogged() {
		p.entries = s.writeOnce(p.entries)
	}
	switch {
	case !s.Active():
	case nothing && s.Channel.tail.Load().last == end:
		s.clearLagging() // the tail claims more than the store has: its next drain finds that out
	default:
		s.catchUp()
	}
}

func batchOf(entries []entry) wire.Batch {
	list := make([]wire.Frame, len(entries))
	for i, e := range entries {
		list[i] = e.frame
	}
	return wire.Batch{Frames: list}
}
