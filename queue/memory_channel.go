package queue

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"switchboard/internal/state"
)

// memoryChannel is a channel: mq_ch_ and mq_m_.
type memoryChannel struct {
	messages        []Message
	bytes           int64
	last, floor     int64
	lost            int64        // highest lost id that a marker reports
	lastMarker      int64        // id of the last marker
	expires         int64        // of the messages, Unix ms
	positionExpires int64        // Unix ms
	state           *state.State // nil for none
}

func (c *memoryChannel) expire(now int64) int64 {
	if now >= c.expires {
		c.drop(len(c.messages))
	}
	switch {
	case c.state != nil: // the janitor ends it
		return math.MaxInt64
	case len(c.messages) > 0:
		return c.expires
	case now < c.positionExpires:
		return c.positionExpires
	}
	return 0
}

// drop removes n messages from the head.
func (c *memoryChannel) drop(n int) {
	if n == 0 {
		return
	}
	for _, m := range c.messages[:n] {
		c.bytes -= int64(memberSize(m))
	}
	c.floor = c.messages[n-1].ID
	c.messages = dropHead(c.messages, n)
}

// AppendChannel is like [Redis.AppendChannel].
func (m *Memory) AppendChannel(_ context.Context, push ChannelPush) (Appended, error) {
	if push.Durable {
		return Appended{}, fmt.Errorf("append to channel %s: %w", push.Channel, ErrNoReplicas)
	}
	a, err := m.appendChannel(push)
	if m.servers != nil && a.ID != 0 { // without m.mu: servers takes another lock
		a.Servers = m.servers(push.Channel)
	}
	if err != nil {
		return a, fmt.Errorf("append to channel %s: %w", push.Channel, err)
	}
	return a, nil
}

// AppendChannels is like [Redis.AppendChannels].
func (m *Memory) AppendChannels(ctx context.Context, pushes []ChannelPush) []Outcome[Appended] {
	return forEach(ctx, pushes, m.AppendChannel)
}

func (m *Memory) appendChannel(push ChannelPush) (Appended, error) {
	channel, key := push.Channel, push.Key
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.sweepLocked()
	if key != "" {
		key = keys{}.channelKey(channel, key)
		if first, found := m.pushed.get(key, now); found {
			a := Appended{ID: first.id, Duplicate: true, Numbers: first.numbers, Reply: first.reply}
			if push.Update != nil {
				a.Clock = now
			}
			return a, nil
		}
	}
	c, found := m.channels.get(channel, now)
	if push.ExistingOnly && (!found || c.last == 0) { // a channel without messages may have generations
		return Appended{}, ErrNewChannel
	}
	if !found {
		c = &memoryChannel{}
	}
	var a Appended
	var err error
	if push.Update != nil {
		a, err = m.appendUpdateLocked(c, push, now)
	} else {
		a = Appended{ID: nextID(now, c.last), Prev: c.last, Data: bytes.Clone(push.Data)}
		m.appendLocked(c, push, Message{ID: a.ID, Data: a.Data}, now)
	}
	m.channels.put(channel, c, now)
	if err == nil && key != "" {
		m.putKeyLocked(key, &keyEntry{id: a.ID, numbers: a.Numbers, reply: a.Reply}, now)
	}
	return a, err
}

// appendLocked appends a message to the channel and drops the oldest ones beyond its bounds.
func (m *Memory) appendLocked(c *memoryChannel, push ChannelPush, message Message, now int64) {
	limit := min(cmp.Or(push.Cap, m.opts.ChannelCap), m.opts.ChannelCap)
	ttl := min(cmp.Or(push.TTL, m.opts.ChannelTTL), max(m.opts.ChannelTTL, MaxChannelTTL))
	c.messages = append(c.messages, message)
	c.bytes += int64(memberSize(message))
	c.last = message.ID
	for n := len(c.messages); n > 1 && (n > limit || c.bytes > m.opts.ChannelMaxBytes); n-- {
		c.drop(1)
	}
	c.expires, c.positionExpires = now+millis(ttl), now+millis(ttl+m.opts.MetaTTL)
}

// ReadChannel is like [Redis.ReadChannel].
func (m *Memory) ReadChannel(ctx context.Context, channel string, after int64, limit int) (Page, error) {
	return m.readChannel(ctx, ChannelRead{Channel: channel, After: after, Limit: limit}), nil
}

func (m *Memory) readChannel(ctx context.Context, read ChannelRead) Page {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.readChannelLocked(read, m.sweepLocked())
	p.count(ctx)
	return p
}

func (m *Memory) readChannelLocked(read ChannelRead, now int64) Page {
	after := read.After
	c, found := m.channels.get(read.Channel, now)
	if !found {
		return Page{Complete: after == 0, Clock: now}
	}
	rest := above(c.messages, after)
	p := Page{Clock: now, Floor: c.floor, Last: c.last, LastMarker: c.lastMarker}
	p.Complete = after == c.floor || after == c.last || contains(c.messages, after)
	p.From = after
	if !p.Complete {
		p.From = max(c.floor, highestBelow(c.messages, after))
		rest = above(c.messages, p.From)
	}
	p.Messages, p.More = firstPage(rest, min(read.Limit, maxPage), cmp.Or(read.Bytes, MaxPageBytes))
	if read.Reach > 0 && (!p.Complete || p.More && p.Messages[len(p.Messages)-1].ID < read.Reach) {
		p.Messages = nil
	}
	return p
}

// ReadChannels is like [Redis.ReadChannels].
func (m *Memory) ReadChannels(ctx context.Context, reads []ChannelRead) []Outcome[Page] {
	return forEach(ctx, reads, func(ctx context.Context, c ChannelRead) (Page, error) { return m.readChannel(ctx, c), nil })
}

// KeepPositions is like [Redis.KeepPositions].
func (m *Memory) KeepPositions(_ context.Context, channels []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.sweepLocked()
	for _, channel := range channels {
		if c, found := m.channels.get(channel, now); found {
			c.positionExpires = max(c.positionExpires, now+millis(m.opts.MetaTTL))
			m.channels.put(channel, c, now)
		}
	}
	return nil
}

// ChannelSize is like [Redis.ChannelSize].
func (m *Memory) ChannelSize(_ context.Context, channel string) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, found := m.channels.get(channel, m.sweepLocked())
	if !found {
		return 0, nil
	}
	return len(c.messages), nil
}

// TrimChannel is like [Redis.TrimChannel].
func (m *Memory) TrimChannel(_ context.Context, channel string, maxAge time.Duration, maxCount int, dryRun bool) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.sweepLocked()
	c, found := m.channels.get(channel, now)
	if !found {
		return 0, nil
	}
	surplus := max(len(c.messages)-maxCount, 0)
	if tooOld(c.last, now, maxAge) {
		surplus = len(c.messages)
	}
	if surplus == 0 || dryRun {
		return surplus, nil
	}
	c.drop(surplus)
	c.positionExpires = max(c.positionExpires, now+millis(m.opts.MetaTTL))
	m.channels.put(channel, c, now)
	return surplus, nil
}
