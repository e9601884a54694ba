package presence

import (
	"slices"
	"strings"

	"switchboard/registry"
)

// crowd is the union of the rosters: a client that moves from one server to another may be in two for a moment.
type memberSet struct {
	largeChannel int // above so many clients changes are told together

	clients map[string]memberEntry
	users   map[string]int // clients of each

	joined, left []registry.Member // by the change under way

	seq int64 // grows with each change

	coalescing bool              // changes are kept to be told together
	steps      map[string][]step // by client: those
	firstSeq   int64             // moment of the first of them
}

type memberEntry struct {
	member  registry.Member
	rosters int // rosters that name it
}

func newMemberSet(large int) memberSet {
	return memberSet{largeChannel: large, clients: map[string]memberEntry{}, users: map[string]int{}, steps: map[string][]step{}}
}

// begin begins a change.
func (c *memberSet) beginChange() { c.joined, c.left = nil, nil }

func (c *memberSet) add(m registry.Member) {
	p, known := c.clients[m.Client]
	if known {
		p.rosters++
		c.clients[m.Client] = p
		c.replace(p.member, m)
		return
	}
	c.clients[m.Client] = memberEntry{m, 1}
	c.users[m.User]++
	c.joined = append(c.joined, m)
}

func (c *memberSet) remove(m registry.Member) {
	p := c.clients[m.Client]
	if p.rosters--; p.rosters > 0 {
		c.clients[m.Client] = p
		return
	}
	delete(c.clients, m.Client)
	if c.users[p.member.User]--; c.users[p.member.User] == 0 {
		delete(c.users, p.member.User)
	}
	c.left = append(c.left, p.member)
}

// change is a client that says something else of itself than it did. As another user it has left and joined.
func (c *memberSet) replace(before, now registry.Member) {
	p := c.clients[now.Client]
	if p.member.User == now.User {
		p.member = now
		c.clients[now.Client] = p
		return
	}
	times := p.rosters
	p.rosters = 1
	c.clients[now.Client] = p
	c.remove(before)
	c.add(now)
	c.clients[now.Client] = memberEntry{now, times}
}

// count is how many clients there are, and of how many users; a client without a user counts as a client only.
func (c *memberSet) count() (clients, users int) {
	users = len(c.users)
	if c.users[""] > 0 {
		users--
	}
	return len(c.clients), users
}

// keep keeps the change under way to be told together with others. It is false when it shall be told at once.
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

// kept gives and forgets what was kept.
func (c *memberSet) takeSteps() (steps map[string][]step, first int64) {
	steps, first = c.steps, c.firstSeq
	c.steps = map[string][]step{}
	c.coalescing = len(c.clients) > c.largeChannel
	return steps, first
}

// behind are the first clients behind a name, in order, at most limit; more says that there are others. limit is above zero.
func (c *memberSet) listAfter(after string, limit int) (list []registry.Member, more bool) {
	byClient := func(a, b registry.Member) int { return strings.Compare(a.Client, b.Client) }
	n := 0
	for client, p := range c.clients {
		if client <= after {
			continue
		}
		n++
		// Of a large crowd only what may be in the page is sorted, half of it each time.
		if list = append(list, p.member); len(list) > 2*limit {
			slices.SortFunc(list, byClient)
			list = list[:limit]
		}
	}
	slices.SortFunc(list, byClient)
	return list[:min(len(list), limit)], n > limit
}

// members are all, by client.
func (c *memberSet) list() []registry.Member {
	list := make([]registry.Member, 0, len(c.clients))
	for _, p := range c.clients {
		list = append(list, p.member)
	}
	slices.SortFunc(list, func(a, b registry.Member) int { return strings.Compare(a.Client, b.Client) })
	return list
}
