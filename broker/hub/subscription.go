package hub

import (
	"slices"
	"strconv"

	"switchboard/broker/dialect"
	"switchboard/internal/state"
	"switchboard/queue"
)

// pageSize is how many messages one read of the store returns.
const pageSize = 128

// Subscribers that read the store get small pages first, since they may unsubscribe, or have a
// socket that takes little: what is not written is read again. After a page that the socket has
// taken as a whole, they get large ones.
const (
	smallPage      = 32 << 10 // bytes
	largePage      = 128 << 10
	largePageLimit = 4 * pageSize // messages
)

// Subscriber is the connection of a subscription. All methods are called on its loop.
type Subscriber interface {
	// ClientID returns the id of the client, which messages may exclude.
	ClientID() string
	// Backlogged reports whether an earlier write has not been sent completely.
	Backlogged() bool
	// Write sends a batch and does not keep it. It may close the connection.
	Write(b *dialect.Batch)
	// Gap tells the client that the messages after `after`, up to id, are lost. If s sees the
	// state, the client also needs new pages of it. Gap may then return true: nothing more is
	// delivered to s until s.Start. The pages must have an id of at least s.Cursor.
	Gap(s *Subscription, after, id int64) (hold bool)
	// MayRead reports whether the store may be read for the subscriber now. If not, the hub asks
	// again at the next tick.
	MayRead() bool
	// Charge notes that the store was read for the subscriber: how many bytes were written to it, and
	// how many were read in vain.
	Charge(written, unused int)
}

// Subscription is a subscriber's place in a channel. It belongs to the subscriber's loop. It has
// only 40 bytes and is meant to be embedded in the subscriber. A separate allocation would lie
// among short-lived objects and cost more memory than its size.
type Subscription struct {
	Channel *Channel
	to      Subscriber
	cursor  int64  // the last id that was written, or skipped by a gap
	index   int32  // in the loop's list, or ended
	loop    uint16 // loop.Index
	flags   flags
	filter  uint8 // dataOnly, withAuthor, or an index in Channel.filters
}

// flags holds the flags of a subscription, and the count that Overtaken returns.
type flags uint8

const (
	lagging flags = 1 << iota // deliver skips it: its socket is backed up, it reads from the store, or it is held
	reading                   // a read of the store is in progress
	held                      // it is lagging until Start, while the client receives pages of the state
	paged                     // the client has received pages of the state since the subscription last caught up
	whole                     // the socket has taken all of the last page from the store
	// The two highest used bits hold the count that Overtaken returns.
	overtakenOne
	overtakenBits = 3 * overtakenOne
)

// ended is the index of a subscription that has ended.
const ended = -1

func (s *Subscription) is(f flags) bool { return s.flags&f != 0 }

// Active reports whether s has begun and has not ended.
func (s *Subscription) Active() bool { return s.Channel != nil && s.index != ended }

// Reusable reports whether s may hold a new subscription: it has ended and no read refers to it.
func (s *Subscription) Reusable() bool { return !s.Active() && !s.is(reading) }

// Cursor returns the id of the last message that was written, or skipped by a gap.
func (s *Subscription) Cursor() int64 { return s.cursor }

func (s *Subscription) write(b *dialect.Batch, last int64) {
	s.cursor = last
	s.to.Write(b)
}

// markLagging makes deliver skip s until its socket is writable and it has caught up.
func (s *Subscription) markLagging() {
	if !s.is(lagging) {
		s.flags |= lagging
		l := &s.Channel.hub.loops[s.loop]
		l.lagging[s] = struct{}{}
		l.laggingCount.Store(int32(len(l.lagging)))
	}
}

func (s *Subscription) clearLagging() {
	s.flags &^= lagging
	l := &s.Channel.hub.loops[s.loop]
	delete(l.lagging, s)
	l.laggingCount.Store(int32(len(l.lagging)))
}

// Resume continues a lagging subscription, because its socket is writable or the store is back.
func (s *Subscription) Resume() {
	if s.is(lagging) && !s.is(reading) {
		s.catchUp()
	}
}

// catchUp writes the messages after the cursor from the tail. If the tail does not reach back to
// the cursor, it reads the store.
func (s *Subscription) catchUp() {
	for s.Active() && !s.is(held) {
		if s.to.Backlogged() {
			s.markLagging()
			return
		}
		messages, ok := s.Channel.tail.Load().after(s.cursor)
		if !ok {
			s.markLagging()
			s.read()
			return
		}
		if len(messages) == 0 {
			s.caughtUp()
			return
		}
		s.writeOnce(messages)
	}
}

// caughtUp makes deliver continue with s.
func (s *Subscription) caughtUp() {
	s.clearLagging()
	s.flags &^= paged | whole | overtakenBits
}

// writeOnce writes as many messages as fit one write, and returns the rest.
func (s *Subscription) writeOnce(messages []*dialect.Message) []*dialect.Message {
	n := countFitting(messages)
	if s.showsState() {
		return s.writeShown(messages, n)
	}
	batch, last := messages[:n], messages[n-1].ID
	if slices.ContainsFunc(batch, (*dialect.Message).Differs) {
		batch = s.Channel.appendShown(nil, batch, s.filter, s.to.ClientID())
	}
	s.write(&dialect.Batch{Messages: batch}, last)
	return messages[n:]
}

// countFitting returns how many of the messages fit one write, at least one.
func countFitting(messages []*dialect.Message) int {
	return dialect.Fitting(messages, (*dialect.Message).WriteSize)
}

// page is a page of messages from the store, encoded.
type page struct {
	messages   []*dialect.Message
	from       int64 // the id before the first message
	lastMarker int64 // id of the channel's newest loss marker
	complete   bool  // no message is missing between the requested position and from
}

// read reads the page after the cursor. Subscribers with the same cursor share one read: many
// clients resume at the same id after their server crashed. The first of them is charged.
func (s *Subscription) read() {
	if s.is(reading) || !s.to.MayRead() { // the next tick resumes the subscription
		return
	}
	s.flags |= reading
	c, end := s.Channel, s.Channel.tail.Load().last
	from := queue.ChannelRead{Channel: c.Name, After: s.cursor, Limit: pageSize, Bytes: smallPage}
	if s.is(whole) {
		from.Limit, from.Bytes = largePageLimit, largePage
	}
	c.hub.opts.Pool.Go(func() {
		p, own, err := c.pageAfter(from)
		c.hub.opts.Loops[s.loop].Post(func() {
			s.flags &^= reading
			to, rest := s.to, p.messages
			if err == nil && s.Active() && !s.is(held) {
				rest = s.applyPage(p, end)
			} // after an error the hub's next tick resumes the subscription
			if len(own) > 0 {
				written := len(own) - len(rest)
				to.Charge(sizeOf(own[:written]), sizeOf(own[written:]))
			}
		})
	})
}

// pageAfter reads a page, unless another caller is reading the same one. own is what it has read
// itself.
func (c *Channel) pageAfter(from queue.ChannelRead) (_ page, own []queue.Message, err error) {
	key := c.Name + " " + strconv.FormatInt(from.After, 10) + " " + strconv.Itoa(from.Bytes) + " " + strconv.FormatInt(from.Reach, 10)
	v, err, _ := c.hub.pageReads.Do(key, func() (any, error) {
		o := c.hub.opts.Queue.ReadChannels(c.hub.context(), []queue.ChannelRead{from})[0]
		own = o.Value.Messages
		return c.encodePage(o.Value), o.Err
	})
	return v.(page), own, err
}

// readPage is the messages of a page that was read from the store.
type readPage struct {
	channel  *Channel
	messages []*dialect.Message
}

// sizeOf returns about how many bytes the store has sent for messages.
func sizeOf(messages []queue.Message) (n int) {
	for i := range messages {
		n += len(messages[i].Data)
	}
	return n
}

// encodePage encodes a page, except for the messages that the tail or the newest page has. The
// subscribers of a busy channel that fall behind the tail read the same messages at different
// times. Without the newest page, each of them would pay for the encoding.
func (c *Channel) encodePage(p queue.Page) page {
	encoded := page{from: p.From, lastMarker: p.LastMarker, complete: p.Complete}
	known := [][]*dialect.Message{c.tail.Load().messages}
	if last := c.hub.lastPage.Load(); last != nil && last.channel == c {
		known = append(known, last.messages)
	}
	for _, m := range p.Messages {
		encoded.messages = append(encoded.messages, c.encodeOnce(m, known))
	}
	if len(encoded.messages) > 0 {
		c.hub.lastPage.Store(&readPage{c, encoded.messages})
	}
	return encoded
}

// encodeOnce returns the message with the id of m in one of the lists, or encodes m. A message that
// is erased in the store may not be erased in the lists.
func (c *Channel) encodeOnce(m queue.Message, known [][]*dialect.Message) *dialect.Message {
	if state.IsErased(m.Data) {
		return c.message(m.ID, m.Data)
	}
	for _, list := range known {
		if i, found := search(list, m.ID); found {
			return list[i]
		}
	}
	return c.message(m.ID, m.Data)
}

// applyPage writes a page that was read after the cursor, and returns the messages that it does not
// write. end is where the tail ended when the read began.
func (s *Subscription) applyPage(p page, end int64) (rest []*dialect.Message) {
	if !p.complete {
		s.overtake(p.from)
	}
	empty := p.complete && len(p.messages) == 0
	for len(p.messages) > 0 && s.Active() && !s.is(held) && !s.to.Backlogged() {
		p.messages = s.writeOnce(p.messages)
	}
	if s.flags &^= whole; s.Active() && !s.to.Backlogged() {
		s.flags |= whole
	}
	switch {
	case !s.Active():
	case empty && s.Channel.tail.Load().last == end:
		s.caughtUp() // the tail has messages that the store lacks; the next drain detects that
	default:
		s.catchUp()
	}
	return p.messages
}
