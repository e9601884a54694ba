package queue

import (
	"context"
	"slices"
)

// ConfirmChannel is like [Redis.ConfirmChannel].
func (m *Memory) ConfirmChannel(_ context.Context, channel string, id int64) (*Marker, error) {
	marker := m.confirmChannel(channel, id)
	if marker != nil && m.servers != nil { // without m.mu, as in AppendChannel
		marker.Servers = m.servers(channel)
	}
	return marker, nil
}

func (m *Memory) confirmChannel(channel string, id int64) *Marker {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.sweepLocked()
	c, found := m.channels.get(channel, now)
	if !found {
		c = &memoryChannel{}
	}
	if tooOld(id, now, m.opts.ChannelTTL+m.opts.MetaTTL) {
		return nil // the position would have expired
	}
	if id <= c.floor || contains(c.messages, id) || len(c.messages) == 0 && c.last >= id {
		return nil
	}
	if id <= c.lost && slices.ContainsFunc(above(c.messages, id), func(m Message) bool {
		after, to, lost := Loss(m.Data)
		return lost && after < id && id <= to
	}) {
		return nil
	}
	marker := &Marker{ID: nextID(now, max(c.last, id)), Prev: c.last}
	marker.Data = lossMarker(max(c.floor, highestBelow(c.messages, id)), id)
	message := Message{ID: marker.ID, Data: marker.Data}
	c.messages = append(c.messages, message)
	c.bytes += int64(memberSize(message))
	c.last, c.lost, c.lastMarker = marker.ID, max(c.lost, id), marker.ID
	c.expires, c.positionExpires = now+millis(m.opts.ChannelTTL), now+millis(m.opts.ChannelTTL+m.opts.MetaTTL)
	m.channels.put(channel, c, now)
	return marker
}

// ConfirmClient is like [Redis.ConfirmClient].
func (m *Memory) ConfirmClient(_ context.Context, client string, id int64) (*Marker, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.sweepLocked()
	c, _ := m.clientLocked(client, now)
	if id <= max(c.acked, c.floor, c.lost) || slices.Contains(c.withdrawn, id) || contains(c.messages, id) ||
		len(c.messages) == 0 && c.last >= id {
		return nil, nil
	}
	marker := &Marker{ID: nextID(now, max(c.last, id)), Prev: c.last}
	if c.server != "" {
		marker.Servers = []string{c.server}
	}
	marker.Data = lossMarker(max(c.acked, c.floor, highestBelow(c.messages, id)), id)
	if len(c.messages) == 0 {
		c.expires = 0
	}
	c.messages = append(c.messages, Message{ID: marker.ID, Data: marker.Data})
	c.last, c.lost, c.expires = marker.ID, id, max(c.expires, now+millis(m.opts.ClientTTL))
	c.renew(now + millis(m.opts.RecordTTL))
	m.clients.put(client, c, now)
	return marker, nil
}

// contains reports whether one of messages has the id. messages are in order.
func contains(messages []Message, id int64) bool {
	rest := above(messages, id)
	return len(rest) < len(messages) && messages[len(messages)-len(rest)-1].ID == id
}

// highestBelow returns the highest id below id, 0 if there is none.
func highestBelow(messages []Message, id int64) int64 {
	lower := messages[:len(messages)-len(above(messages, id-1))]
	if len(lower) == 0 {
		return 0
	}
	return lower[len(lower)-1].ID
}
