package queue

import (
	"slices"
	"sort"
)

// ackGroup is an acknowledgement group: the copies of one message, see ClientPush.AckGroup.
type ackGroup struct {
	copies  []groupCopy
	expires int64 // Unix ms
}

// groupCopy is a message in a client's queue.
type groupCopy struct {
	client string
	id     int64
}

func (g *ackGroup) expire(now int64) int64 {
	if now >= g.expires {
		return 0
	}
	return g.expires
}

// groupedID is a message of a client that belongs to a group.
type groupedID struct {
	id    int64
	group string
}

// addToGroupLocked adds the message of a client to a group.
func (m *Memory) addToGroupLocked(client string, c *memoryClient, group string, id, now int64) {
	c.grouped = slices.DeleteFunc(c.grouped, func(g groupedID) bool { return g.group == group })
	at := sort.Search(len(c.grouped), func(i int) bool { return c.grouped[i].id >= id })
	c.grouped = slices.Insert(c.grouped, at, groupedID{id, group})
	if surplus := len(c.grouped) - 2*m.opts.ClientCap; surplus > 0 {
		c.grouped = c.grouped[surplus:]
	}
	g, known := m.groups.get(group, now)
	if !known {
		g = &ackGroup{}
	}
	// A later push with the same key has the same group. Only the client's later message then
	// belongs to the group.
	g.copies = slices.DeleteFunc(g.copies, func(c groupCopy) bool { return c.client == client })
	g.copies = append(g.copies, groupCopy{client, id})
	g.expires = max(g.expires, c.expires, c.recordExpires)
	m.groups.put(group, g, now)
}

// withdrawGroupsLocked withdraws the other copies of the messages up to id that a client
// acknowledged.
func (m *Memory) withdrawGroupsLocked(client string, c *memoryClient, id, now int64) {
	for len(c.grouped) > 0 && c.grouped[0].id <= id {
		group := c.grouped[0].group
		c.grouped = c.grouped[1:]
		g, known := m.groups.get(group, now)
		if !known {
			continue
		}
		for _, other := range g.copies {
			if other.client != client {
				m.withdrawLocked(other, group, now)
			}
		}
		g.copies = nil
	}
	c.withdrawn = slices.DeleteFunc(c.withdrawn, func(withdrawn int64) bool { return withdrawn <= id })
}

// withdrawLocked removes a message from a client's queue. The floor stays, so that the client sees
// no gap.
func (m *Memory) withdrawLocked(from groupCopy, group string, now int64) {
	c, known := m.clients.get(from.client, now)
	if !known {
		return
	}
	c.grouped = slices.DeleteFunc(c.grouped, func(g groupedID) bool { return g == groupedID{from.id, group} })
	at := slices.IndexFunc(c.messages, func(m Message) bool { return m.ID == from.id })
	if at < 0 {
		return
	}
	c.messages = slices.Delete(c.messages, at, at+1) // pages are copies
	c.withdrawn = append(c.withdrawn, from.id)
	if surplus := len(c.withdrawn) - m.opts.ClientCap; surplus > 0 {
		c.withdrawn = c.withdrawn[surplus:]
	}
	if len(c.messages) == 0 && c.floor <= c.acked {
		c.acked = c.last
	}
}
