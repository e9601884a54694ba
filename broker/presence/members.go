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
	steps      map[string][]step // joins and leaves since the last publishCoalescedLocked, by client
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
func (s *memberSet) beginChange() { s.joined, s.left = nil, nil }

// add adds a client of one roster.
func (s *memberSet) add(m registry.Member) {
	e, known := s.clients[m.Client]
	if known {
		e.rosterCount++
		s.clients[m.Client] = e
		s.replace(e.member, m)
		return
	}
	s.clients[m.Client] = memberEntry{m, 1}
	s.users[m.User]++
	s.joined = append(s.joined, m)
}

// remove removes a client of one roster.
func (s *memberSet) remove(m registry.Member) {
	e := s.clients[m.Client]
	if e.rosterCount--; e.rosterCount > 0 {
		s.clients[m.Client] = e
		return
	}
	delete(s.clients, m.Client)
	if s.users[e.member.User]--; s.users[e.member.User] == 0 {
		delete(s.users, e.member.User)
	}
	s.left = append(s.left, e.member)
}

// replace updates the data of a client. A client with another user counts as a leave and a join.
func (s *memberSet) replace(before, now registry.Member) {
	e := s.clients[now.Client]
	if isAliasMember(now) && before.Since.Before(now.Since) {
		now.Since = before.Since // of the first server with a client of the user
	}
	if e.member.User == now.User {
		e.member = now
		s.clients[now.Client] = e
		return
	}
	count := e.rosterCount
	e.rosterCount = 1 // so that remove deletes the client; the count is restored below
	s.clients[now.Client] = e
	s.remove(before)
	s.add(now)
	s.clients[now.Client] = memberEntry{now, count}
}

// count returns the numbers of clients and of users. A client without a user counts only as a
// client.
func (s *memberSet) count() (clients, users int) {
	users = len(s.users)
	if s.users[""] > 0 {
		users--
	}
	return len(s.clients), users
}

// coalesce keeps the current change for publishCoalescedLocked if the channel is large. It returns
// false if the change is to be published at once.
func (s *memberSet) coalesce() bool {
	if !s.coalescing && len(s.clients) <= s.largeChannel {
		return false
	}
	s.coalescing = true
	if len(s.steps) == 0 {
		s.firstSeq = s.seq
	}
	for _, m := range s.left {
		s.steps[m.Client] = append(s.steps[m.Client], step{s.seq, m, false})
	}
	for _, m := range s.joined {
		s.steps[m.Client] = append(s.steps[m.Client], step{s.seq, m, true})
	}
	return true
}

// takeSteps returns and removes the steps that were kept.
func (s *memberSet) takeSteps() (steps map[string][]step, first int64) {
	steps, first = s.steps, s.firstSeq
	s.steps = map[string][]step{}
	s.coalescing = len(s.clients) > s.largeChannel
	return steps, first
}

// listAfter returns the first limit members whose client id is greater than after, sorted by
// client. limit must be positive. more reports whether further members follow.
func (s *memberSet) listAfter(after string, limit int) (list []registry.Member, more bool) {
	byClient := func(a, b registry.Member) int { return strings.Compare(a.Client, b.Client) }
	n := 0
	for client, e := range s.clients {
		if client <= after {
			continue
		}
		n++
		// Keep only the lowest ids so far, to avoid sorting all members of a large channel.
		if list = append(list, e.member); len(list) > 2*limit {
			slices.SortFunc(list, byClient)
			list = list[:limit]
		}
	}
	slices.SortFunc(list, byClient)
	return list[:min(len(list), limit)], n > limit
}

// list returns all members, sorted by client.
func (s *memberSet) list() []registry.Member {
	list := make([]registry.Member, 0, len(s.clients))
	for _, e := range s.clients {
		list = append(list, e.member)
	}
	slices.SortFunc(list, func(a, b registry.Member) int { return strings.Compare(a.Client, b.Client) })
	return list
}
