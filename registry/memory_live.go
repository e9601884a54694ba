package registry

import (
	"time"
)

// liveList is the list of live servers of [Memory]. See renew_listed.lua.
type liveList struct {
	ends     map[string]time.Time
	about    map[string]about
	changes  map[string]liveChange // by server
	lastBeat time.Time
	number   int64 // of the last change
	floor    int64 // changes up to this number may be forgotten
}

// liveChange is the last start or end of a server.
type liveChange struct {
	number int64
	at     time.Time
}

func newLiveList() liveList {
	return liveList{ends: map[string]time.Time{}, about: map[string]about{}, changes: map[string]liveChange{}}
}

// renew renews the lease of a server, ends the leases that have expired, and returns the changes.
func (l *liveList) renew(s Server, since int64, now time.Time, lease time.Duration) Changes {
	// If no server could renew its lease for two beats, no lease has run meanwhile.
	if pause := now.Sub(l.lastBeat); pause > lease*2/5 {
		for id, end := range l.ends {
			l.ends[id] = end.Add(pause)
		}
	}
	if end, listed := l.ends[s.ID]; !listed || !now.Before(end) {
		since = 0
	}
	l.ends[s.ID], l.lastBeat = now.Add(lease), now
	var changed []string
	if a := aboutOf(s); l.about[s.ID] != a {
		l.about[s.ID], changed = a, []string{s.ID}
	}
	for id, end := range l.ends {
		if !now.Before(end) {
			delete(l.ends, id)
			delete(l.about, id)
			changed = append(changed, id)
		}
	}
	l.change(now, changed...)
	return l.since(since)
}

// remove removes a server.
func (l *liveList) remove(id string) {
	if _, listed := l.ends[id]; listed {
		delete(l.ends, id)
		delete(l.about, id)
		l.change(l.lastBeat, id)
	}
}

// change records a change of servers, and forgets old ones.
func (l *liveList) change(now time.Time, servers ...string) {
	if len(servers) == 0 {
		return
	}
	l.number++
	for _, id := range servers {
		l.changes[id] = liveChange{l.number, now}
	}
	for id, c := range l.changes {
		if now.Sub(c.at) > changesKeep {
			delete(l.changes, id)
			l.floor = max(l.floor, c.number)
		}
	}
}

// since returns the changes after a number.
func (l *liveList) since(number int64) Changes {
	c := Changes{Number: l.number, All: number < max(l.floor, 1) || number > l.number}
	for id, change := range l.changes {
		a, live := l.about[id]
		switch {
		case c.All || change.number <= number:
		case live:
			c.Changed = append(c.Changed, a.server(id))
		default:
			c.Ended = append(c.Ended, id)
		}
	}
	if c.All {
		for id, a := range l.about {
			c.Changed = append(c.Changed, a.server(id))
		}
	}
	c.sort()
	return c
}
