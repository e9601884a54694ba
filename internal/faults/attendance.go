package main

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// userPrefix is what the channel of a user that is followed begins with; who is in it is the user, or nobody.
const userPrefix = "$user:"

// attendance holds what the watchers were told of who comes and goes. A name in it is `user/client`, or a user.
type attendance struct {
	mu       sync.Mutex // guards the fields below
	rolls    map[roll]*present
	told     int
	twice    int
	evidence evidence
}

// roll is what one watcher knows of one channel.
type roll struct{ watcher, channel string }

// present is who is there, as one watcher was told.
type present struct {
	known bool // who was there at first
	// firm: all that is known is from what was told before. Until then the page that was read at first may be ahead of
	// what is being told, and the first that is told of somebody may be known already.
	firm  bool
	in    map[string]bool
	heard map[string]time.Time // when somebody came or went last
}

func newAttendance() *attendance {
	return &attendance{rolls: map[roll]*present{}, evidence: evidence{}}
}

// open begins a roll anew: the watcher has subscribed on a new connection.
func (a *attendance) open(r roll, p *present) {
	p.in, p.heard = map[string]bool{}, map[string]time.Time{}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rolls[r] = p
}

// page enters who is there, as the watcher was answered. Of whom it has heard it knows better.
func (a *attendance) page(r roll, names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.rolls[r]
	p.known = true
	for _, name := range names {
		if p.heard[name].IsZero() {
			p.in[name] = true
		}
	}
}

// replace enters who is there in the place of all that the watcher was told.
func (a *attendance) replace(r roll, names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.rolls[r]
	p.known, p.in = true, map[string]bool{}
	for _, name := range names {
		p.in[name] = true
	}
}

// hear enters that somebody came, or went.
func (a *attendance) hear(r roll, name string, in bool, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.told++
	p := a.rolls[r]
	if p == nil || name == ownLabel(r.watcher) {
		a.twice++
		a.evidence.add("told twice", "%s is told of %s in %s, which is none of its business", r.watcher, name, r.channel)
		return
	}
	before := p.heard[name]
	if p.in[name] == in && (p.firm || !before.IsZero()) {
		a.twice++
		word, since := "went", "without having heard of it"
		if in {
			word = "came"
		}
		if !before.IsZero() {
			since = at.Sub(before).Round(time.Millisecond).String() + " after it heard of it last"
		}
		a.evidence.add("told twice", "%s is told that %s %s in %s, %s", r.watcher, name, word, r.channel, since)
	}
	p.heard[name] = at
	if in {
		p.in[name] = true
	} else {
		delete(p.in, name)
	}
}

// firm says that all that has happened has been told.
func (a *attendance) firm() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.rolls {
		p.firm = true
	}
}

// believed is who is there, as the watcher was told; false when it does not know yet.
func (a *attendance) believed(r roll) ([]string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.rolls[r]
	if p == nil || !p.known {
		return nil, false
	}
	return slices.Sorted(maps.Keys(p.in)), true
}

// lastHeard is when a watcher was told of the last of these that it came or went; false while it takes
// one of them to be there.
func (a *attendance) lastHeard(r roll, names []string) (last time.Time, gone bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.rolls[r]
	for _, name := range names {
		if p.in[name] {
			return last, false
		}
		if p.heard[name].After(last) {
			last = p.heard[name]
		}
	}
	return last, true
}

// counted is what was told, and how much of it twice.
func (a *attendance) counted() (told, twice int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.told, a.twice
}
