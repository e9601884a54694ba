package presence

import (
	"slices"
	"strings"

	"switchboard/registry"
)

// memberSet is the union of the rosters. A client that moves to another server may be in two
// rosters for a moment.
type memberSet struct {
	largeChannel int // in a channel with more clients, changes are coalesced

	clients map[string]memberEntry
	users   map[string]int // number of clients by user

	joined, left []registry.Member // by the current change

	seq int64 // grows with each change

	coalescing bool              // changes are kept in steps
	steps      map[string][]step // joins and leaves since the last publishCoalesced, by client
	firstSeq   int64             // seq of the first of them
}

// memberEntry is a client in the set.
type memberEntry struct {
	member      registry.Member
	rosterCount int // rosters that contain it
}

func newMemberSet(large int) memberSet {
	return memberSet{largeChannel: large, clients: map[string]memberEntry{}, users: map[string]int{}, steps: map[string][]step{}}
}

// beginChange resets joined and left.
func (c *memberSet) beginChange() { c.joined, c.left = nil, nil }

// add adds a client of one roster.
func (c *memberSet) add(m registry.Member) {
	p, known := c.clients[m.Client]
	if known {
		p.rosterCount++
		c.clients[m.Client] = p
		c.replace(p.member, m)
		return
	}
	c.clients[m.Client] = memberEntry{m, 1}
	c.users[m.User]++
	c.joined = append(c.joined, m)
}

// remove removes a client of one roster.
func (c *memberSet) remove(m registry.Member) {
	p := c.clients[m.Client]
	if p.rosterCount--; p.rosterCount > 0 {
		c.clients[m.Client] = p
		return
	}
	delete(c.clients, m.Client)
	if c.users[p.member.User]--; c.users[p.member.User] == 0 {
		delete(c.users, p.member.User)
	}
	c.left = append(c.left, p.member)
}

// replace updates the data of a client. A client with another user counts as a leave and a join.
func (c *memberSet) replace(before, now registry.Member) {
	p := c.clients[now.Client]
	if p.member.User == now.User {
		p.member = now
		c.clients[now.Client] = p
		return
	}
	count := p.rosterCount
	p.rosterCount = 1
	c.clients[now.Client] = p
	c.remove(before)
	c.add(now)
	c.clients[now.Client] = memberEntry{now, count}
}

// count returns the numbers of clients and of users. A client without a user counts only as a
// client.
func (c *memberSet) count() (clients, users int) {
	users = len(c.users)
	if c.users[""] > 0 {
		users--
	}
	return len(c.clients), users
}

// coalesce keeps the current change for publishCoalesced if the channel is large. It returns false
// if the change is to be published at once.
func (c *memberSet) coalesce() bool {
	if !c.coalescing && len(c.clients) <= c.largeChannel {
		return false
	}
	c.coalescing = true
	if len(c.steps) == 0 {
		c.firstSeq = c.seq
	}
	for _, m := range c.left {
		c.steps[m.Client] = append(c.steps[m.Client], step{c.seq, m, false})
	}
	for _, m := range c.joined {
		c.steps[m.Client] = append(c.steps[m.Client], step{c.seq, m, true})
	}
	return true
}

// takeSteps returns and removes the steps that were kept.
func (c *memberSet) takeSteps() (steps map[string][]step, first int64) {
	steps, first = c.steps, c.firstSeq
	c.steps = map[string][]step{}
	c.coalescing = len(c.clients) > c.largeChannel
	return steps, first
}

// listAfter returns the first clients after the client id `after`, in order and at most limit,
// which is positive. more reports whether there are others.
func (c *memberSet) listAfter(after string, limit int) (list []registry.Member, more bool) {
	byClient := func(a, b registry.Member) int { return strings.Compare(a.Client, b.Client) }
	n := 0
	for client, p := range c.clients {
		if client <= after {
			continue
		}
		n++
		// In a large channel, sort only candidates for the page, and drop half of them each time.
		if list = append(list, p.member); len(list) > 2*limit {
			slices.SortFunc(list, byClient)
			list = list[:limit]
		}
	}
	slices.SortFunc(list, byClient)
	return list[:min(len(list), limit)], n > limit
}

// list returns all members, by client.
func (c *memberSet) list() []registry.Member {
	list := make([]registry.Member, 0, len(c.clients))
	for _, p := range c.clients {
		list = append(list, p.member)
	}
	slices.SortFunc(list, func(a, b registry.Member) int { return strings.Compare(a.Client, b.Client) })
	return list
}
