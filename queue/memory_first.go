package queue

import (
	"slices"
	"sort"
)

// memoryGroup is where the messages of one group are, of which only the first acknowledgement counts.
type memoryGroup struct {
	members []member
	expires int64 // Unix ms
}

// member is a message in a client's queue.
type member struct {
	client string
	id     int64
}

func (g *memoryGroup) expire(now int64) int64 {
	if now >= g.expires {
		return 0
	}
	return g.expires
}

// firstOf is a message of a client that is the group's, while it is not acknowledged.
type firstOf struct {
	id    int64
	group string
}

// joinLocked notes under which id a client has the message of a group.
func (m *Memory) joinLocked(client string, c *memoryClient, group string, id, now int64) {
	c.firsts = slices.DeleteFunc(c.firsts, func(f firstOf) bool { return f.group == group })
	at := sort.Search(len(c.firsts), func(i int) bool { return c.firsts[i].id >= id })
	c.firsts = slices.Insert(c.firsts, at, firstOf{id, group})
	if surplus := len(c.firsts) - 2*m.opts.ClientCap; surplus > 0 {
		c.firsts = c.firsts[surplus:]
	}
	g, known := m.groups.get(group, now)
	if !known {
		g = &memoryGroup{}
	}
	// A key that is used again later makes the same group again: what the client has of it is the later message.
	g.members = slices.DeleteFunc(g.members, func(of member) bool { return of.client == client })
	g.members = append(g.members, member{client, id})
	g.expires = max(g.expires, c.expires, c.forgetting)
	m.groups.put(group, g, now)
}

// ackedFirstLocked withdraws what belongs to the messages up to id, which a client has acknowledged.
func (m *Memory) ackedFirstLocked(client string, c *memoryClient, id, now int64) {
	for len(c.firsts) > 0 && c.firsts[0].id <= id {
		group := c.firsts[0].group
		c.firsts = c.firsts[1:]
		g, known := m.groups.get(group, now)
		if !known {
			continue
		}
		for _, other := range g.members {
			if other.client != client {
				m.withdrawLocked(other, group, now)
			}
		}
		g.members = nil
	}
	c.withdrawn = slices.DeleteFunc(c.withdrawn, func(gone int64) bool { return gone <= id })
}

// withdrawLocked takes a message out of a client's queue. The floor stays: the client is told of no gap.
func (m *Memory) withdrawLocked(from member, group string, now int64) {
	c, known := m.clients.get(from.client, now)
	if !known {
		return
	}
	c.firsts = slices.DeleteFunc(c.firsts, func(f firstOf) bool { return f == firstOf{from.id, group} })
	at := slices.IndexFunc(c.messages, func(held Message) bool { return held.ID == from.id })
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
