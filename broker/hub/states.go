package hub

import (
	"errors"
	"slices"

	"switchboard/broker/dialect"
	"switchboard/broker/loop"
	"switchboard/internal/state"
)

// The filters at fixed indexes, which need no table: most subscriptions have one of them.
const (
	dataOnly   uint8 = iota // shows only the data of messages
	withAuthor              // also shows their authors
	firstState              // this filter, and all at higher indexes, show the state
)

// maxFilters bounds the different filters of one channel: Subscription.filter is one byte.
const maxFilters = 255

// positionEvery is how many changes of a channel's state there are for one that all its state
// subscribers receive, at least as an id. Otherwise the position of a subscriber with a narrow
// prefix would stay until the store has dropped the messages after it, and a reconnect would find a
// gap. It is also how many messages with an excluded client there are for one of which that client
// receives the id.
const positionEvery = 64

// commonFilters are the filters without a prefix, by their indexes. Every channel with state
// subscribers has them, so that a channel with too many prefixes still accepts these subscriptions.
var commonFilters = []state.Filter{dataOnly: {}, withAuthor: {By: true}, firstState: {State: true}, {State: true, By: true}}

// frameBytes is about how many bytes a change takes on a socket besides the channel and the entry.
const frameBytes = 64

// ErrFilters is returned for a subscription to a channel whose subscribers have too many different
// prefixes.
var ErrFilters = errors.New("hub: too many different prefixes in the channel")

// SubscribeState begins a subscription that sees the state, as Subscribe does. The subscription is
// held until Start, so that the client receives the pages of the state first. The only error is
// ErrFilters; the caller then still has to release pos.
func (h *Hub) SubscribeState(s *Subscription, l *loop.Loop, to Subscriber, pos Position, filter state.Filter) error {
	index, err := pos.Channel.useFilter(filter)
	if err != nil {
		return err
	}
	h.Subscribe(s, l, to, pos)
	s.filter = index
	s.hold()
	return nil
}

// ReserveFilter makes sure that the channel accepts a subscription with the filter until release is
// called. The caller holds the channel. The only error is ErrFilters.
func (c *Channel) ReserveFilter(filter state.Filter) (release func(), err error) {
	index, err := c.useFilter(filter)
	if err != nil {
		return nil, err
	}
	return func() { c.releaseFilter(index) }, nil
}

// SetFilter changes what an active subscription sees besides the data of messages, on its loop. If
// filter shows the state, the subscription is held until Start; otherwise it continues. ErrFilters
// changes nothing. It is returned only for a filter that shows the state.
func (s *Subscription) SetFilter(filter state.Filter) error {
	index, err := s.Channel.useFilter(filter)
	if err != nil {
		return err
	}
	s.Channel.releaseFilter(s.filter)
	s.filter = index
	if s.showsState() {
		s.hold()
	} else if s.is(held) {
		s.Start()
	}
	return nil
}

// showsState reports whether s sees the state.
func (s *Subscription) showsState() bool { return s.filter >= firstState }

// Filter returns what s sees besides the data of messages. An ended subscription sees nothing.
func (s *Subscription) Filter() state.Filter {
	if !s.Active() {
		return state.Filter{}
	}
	return s.Channel.filter(s.filter)
}

// hold stops the delivery until Start.
func (s *Subscription) hold() {
	s.markLagging()
	s.flags |= held | paged
}

// Held reports whether s waits for Start.
func (s *Subscription) Held() bool { return s.is(held) }

// Overtaken returns how many series of pages in a row became useless, at most 3. A series is
// useless if the store no longer has the messages after it, so that another gap follows. A loss
// marker does not count: a failover may leave several in a row, and s passes each of them once. The
// count is 0 again when s has received all messages of the channel.
func (s *Subscription) Overtaken() int { return int(s.flags & overtakenBits / overtakenOne) }

// overtake tells the subscriber that the store does not know its position, and continues after
// cursor.
func (s *Subscription) overtake(cursor int64) {
	if s.is(paged) && s.Overtaken() < 3 {
		s.flags += overtakenOne
	}
	s.gap(s.cursor, cursor, cursor)
}

// gap tells the subscriber that the messages after `after`, up to id, are lost, and continues after
// cursor.
func (s *Subscription) gap(after, id, cursor int64) {
	s.cursor = cursor
	if s.to.Gap(s, after, id) && s.showsState() && s.Active() {
		s.hold()
	}
}

// writeShown is writeOnce for a subscription that sees the state. n messages fit one write. It
// calls Gap for a loss marker.
func (s *Subscription) writeShown(messages []*dialect.Message, n int) []*dialect.Message {
	if e := messages[0].Event; e != nil {
		s.gap(*e.After, *e.ID, messages[0].ID)
		return messages[1:]
	}
	if i := slices.IndexFunc(messages[:n], isMarker); i > 0 {
		n = i
	}
	shown := s.Channel.appendShown(nil, messages[:n], s.filter, s.to.ClientID())
	s.writeAny(&dialect.Batch{Messages: shown}, messages[n-1].ID)
	return messages[n:]
}

// writeAny is write for a batch that may be empty.
func (s *Subscription) writeAny(b *dialect.Batch, last int64) {
	if s.cursor = last; len(b.Messages) > 0 {
		s.to.Write(b)
	}
}

// appendShown appends the messages as a client with a filter receives them. The client is "" for
// one that no message excludes.
func (c *Channel) appendShown(list, messages []*dialect.Message, filter uint8, client string) []*dialect.Message {
	f := c.filter(filter)
	list = slices.Grow(list, len(messages))
	for _, m := range messages {
		if m.Excludes(client) {
			m = m.ShownExcluded(f, c.hub.opts.Messages)
		} else {
			m = m.Shown(f, c.hub.opts.Messages)
		}
		if m != nil {
			list = append(list, m)
		}
	}
	return list
}

// filter returns the filter with an index that is in use.
func (c *Channel) filter(index uint8) state.Filter {
	if index < firstState {
		return commonFilters[index]
	}
	return (*c.filters.Load())[index]
}

// useFilter adds a subscription with filter f and returns the index of f, or ErrFilters.
func (c *Channel) useFilter(f state.Filter) (index uint8, err error) {
	switch {
	case !f.State && f.By:
		return withAuthor, nil
	case !f.State:
		return dataOnly, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	list := commonFilters
	if p := c.filters.Load(); p != nil {
		list = *p
	}
	i := slices.Index(list, f)
	for free := len(commonFilters); i < 0; free++ {
		switch {
		case free > maxFilters:
			return 0, ErrFilters
		case free == len(list):
			list, i = append(slices.Clip(list), f), free
		case c.filterRefs[free] == 0:
			list, i = slices.Clone(list), free
			list[i] = f
		}
	}
	for len(c.filterRefs) < len(list) {
		c.filterRefs = append(c.filterRefs, 0)
	}
	c.filterRefs[i]++
	c.filters.Store(&list)
	c.stateSubscribers.Add(1)
	return uint8(i), nil
}

// releaseFilter undoes useFilter.
func (c *Channel) releaseFilter(index uint8) {
	if index < firstState {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.filterRefs[index]--
	if c.stateSubscribers.Add(-1) == 0 {
		c.filterRefs = nil
		c.filters.Store(nil)
	}
}

// StateSubscribers returns how many subscriptions on this server see the channel's state.
func (c *Channel) StateSubscribers() int { return int(c.stateSubscribers.Load()) }

// entry encodes a message with an entry: a change of the channel's state, or a message with more
// than data.
func (c *Channel) entry(id int64, data []byte) *dialect.Message {
	if message, ok := state.ScanMessage(data); ok {
		return c.enveloped(id, message)
	}
	entry, err := state.DecodeEntry(data)
	if err != nil {
		c.hub.opts.Logger.Error().Err(err).Str("channel", c.Name).Int64("id", id).Msg("a message is skipped")
	}
	if entry != nil && entry.Erase != 0 {
		return c.report(id, entry.Erase)
	}
	if entry != nil && !entry.HasChanges() {
		return c.enveloped(id, entry.Message())
	}
	m := &dialect.Message{Channel: c.Name, ID: id}
	if entry != nil && entry.Data != nil {
		m = c.hub.opts.Messages.Message(c.Name, id, entry.Data)
	}
	if entry != nil && entry.Exclude != "" {
		m.Envelope = new(dialect.Envelope)
		c.exclude(m.Envelope, entry.Exclude)
	}
	m.Changes = &dialect.Changes{
		Entry: entry, Size: 2 * len(data), WriteSize: len(data) + len(c.Name) + frameBytes,
		SendID: c.changes.Add(1)%positionEvery == 0,
	}
	return m
}

// enveloped encodes a message with an Envelope that does not change the state.
func (c *Channel) enveloped(id int64, message state.Message) *dialect.Message {
	var m *dialect.Message
	switch {
	case message.Data == nil:
		m = &dialect.Message{Channel: c.Name, ID: id, Envelope: new(dialect.Envelope)}
	case message.By != "":
		m = c.hub.opts.Messages.Authored(c.Name, id, message.Data, message.By)
	default:
		m = c.hub.opts.Messages.Message(c.Name, id, message.Data)
		m.Envelope = new(dialect.Envelope)
	}
	c.exclude(m.Envelope, message.Exclude)
	return m
}

// exclude notes in e which client does not receive the data, "" for none.
func (c *Channel) exclude(e *dialect.Envelope, client string) {
	if e.Exclude = client; client != "" {
		e.SendID = c.excluded.Add(1)%positionEvery == 0
	}
}

// Follower receives all messages of a channel, in order. Its methods are called with the channel
// locked: they must not block or call the hub.
type Follower interface {
	// Append receives the messages that follow the ones before.
	Append(messages []*dialect.Message)
	// Lost reports that the messages that follow are not known. It is the last call.
	Lost()
}

// Follow makes f the follower of the channel, instead of another one. f has the state at the id
// `after`, as the store returned it. The first call of Append has the messages after it that this
// server knows; there may be none. Follow returns false if some of them are not known.
func (c *Channel) Follow(f Follower, after int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.bound.Load() {
		return false
	}
	messages, ok := c.tail.Load().after(after)
	if ok {
		c.follower, c.followerAhead = f, 0
		if after > c.tail.Load().last {
			c.followerAhead = after
		}
		f.Append(messages)
	}
	return ok
}

// appendToFollowerLocked passes messages that extend the tail to the follower. If the follower
// began at a message after the end of the tail, and the tail passes its id without it, then the
// store has lost the message. Some subscribers may have pages with its changes. The broker then
// stores a loss marker, which makes the servers send new pages.
func (c *Channel) appendToFollowerLocked(more []*dialect.Message) {
	if c.follower == nil {
		return
	}
	if ahead := c.followerAhead; ahead > 0 && len(more) > 0 && more[len(more)-1].ID >= ahead {
		c.followerAhead = 0
		if !slices.ContainsFunc(more, func(m *dialect.Message) bool { return m.ID == ahead }) {
			c.loseFollowerLocked()
			c.hub.opts.Lost(c.Name, ahead)
			return
		}
	}
	c.follower.Append(slices.Clone(more)) // not more itself, which would escape to the heap
}

// Unfollow undoes Follow.
func (c *Channel) Unfollow(f Follower) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.follower == f {
		c.follower = nil
	}
}

func (c *Channel) loseFollower() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loseFollowerLocked()
}

// loseFollowerLocked removes the follower, because the tail begins anew or ends.
func (c *Channel) loseFollowerLocked() {
	if f := c.follower; f != nil {
		c.follower = nil
		f.Lost()
	}
}
