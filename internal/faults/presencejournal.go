package main

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// userPrefix starts the name of the channel that reports whether a user is online. Its only
// member is the user itself.
const userPrefix = "$user:"

// presenceJournal records the joins and leaves that the watchers received. A name in it is a client
// id (`user/client`), or a user in a channel that starts with userPrefix.
type presenceJournal struct {
	mu       sync.Mutex // guards the fields below
	views    map[viewKey]*memberView
	events   int
	repeated int
	evidence evidence
}

// viewKey identifies what one watcher knows about one channel.
type viewKey struct{ watcher, channel string }

// memberView is one watcher's picture of a channel's members.
type memberView struct {
	known bool // the watcher has read the members once
	// settled means that every join and leave before the first pages has arrived: see settlement.
	// Until then the pages may be newer than the events, so the first event about a name may repeat
	// them.
	settled   bool
	members   map[string]bool
	lastEvent map[string]time.Time // time of the last join or leave of a name
	// ahead holds the names that a page has shown differently than the events before it. Only the next
	// event about such a name may repeat what is known.
	ahead map[string]bool
}

func newPresenceJournal() *presenceJournal {
	return &presenceJournal{views: map[viewKey]*memberView{}, evidence: evidence{}}
}

// reset starts a view anew: the watcher has subscribed on a new connection, or missed changes.
func (j *presenceJournal) reset(key viewKey, view *memberView) {
	view.members, view.lastEvent, view.ahead = map[string]bool{}, map[string]time.Time{}, map[string]bool{}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.views[key] = view
}

// view returns the current view, nil before the first reset.
func (j *presenceJournal) view(key viewKey) *memberView {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.views[key]
}

// pageShown records a page that the watcher has read, when it arrives among the events. The page
// has all names above after and up to last; an empty last stands for the end.
func (j *presenceJournal) pageShown(key viewKey, after, last string, names []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	view := j.views[key]
	if view == nil {
		return
	}
	shown := map[string]bool{}
	for _, name := range names {
		if shown[name] = true; !view.members[name] {
			view.ahead[name] = true
		}
	}
	for name := range view.members {
		if name > after && (last == "" || name <= last) && !shown[name] {
			view.ahead[name] = true
		}
	}
}

// applyPages adds the members of all pages, unless the view has been reset since they were
// requested. Names that already had an event keep the event's state, which is newer.
func (j *presenceJournal) applyPages(view *memberView, key viewKey, names []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.views[key] != view {
		return // the pages may be older than the reset
	}
	view.known = true
	for _, name := range names {
		if view.lastEvent[name].IsZero() {
			view.members[name] = true
		}
	}
}

// replaceMembers replaces the view with a complete list of members.
func (j *presenceJournal) replaceMembers(key viewKey, names []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	view := j.views[key]
	view.known, view.members = true, map[string]bool{}
	clear(view.ahead)
	for _, name := range names {
		view.members[name] = true
	}
}

// event applies a join or a leave.
func (j *presenceJournal) event(key viewKey, name string, in bool, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events++
	view := j.views[key]
	if view == nil || name == watcherClientID(key.watcher) {
		j.repeated++
		j.evidence.add("repeated event", "%s received an event about %s in %s, which it must not", key.watcher, name, key.channel)
		return
	}
	before := view.lastEvent[name]
	if view.members[name] == in && !view.ahead[name] && (view.settled || !before.IsZero()) {
		j.repeated++
		kind, since := "leave", "without an earlier event"
		if in {
			kind = "join"
		}
		if !before.IsZero() {
			since = at.Sub(before).Round(time.Millisecond).String() + " after the last event"
		}
		j.evidence.add("repeated event", "%s received a %s of %s in %s at %s, %s",
			key.watcher, kind, name, key.channel, at.UTC().Format("15:04:05.000"), since)
	}
	view.lastEvent[name] = at
	delete(view.ahead, name)
	if in {
		view.members[name] = true
	} else {
		delete(view.members, name)
	}
}

// members returns the members as the watcher knows them, and false before it has read them.
func (j *presenceJournal) members(key viewKey) ([]string, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	view := j.views[key]
	if view == nil || !view.known {
		return nil, false
	}
	return slices.Sorted(maps.Keys(view.members)), true
}

// lastLeave returns the time of the last leave among the names, and false while one of them is
// still a member.
func (j *presenceJournal) lastLeave(key viewKey, names []string) (last time.Time, left bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	view := j.views[key]
	for _, name := range names {
		if view.members[name] {
			return last, false
		}
		if view.lastEvent[name].After(last) {
			last = view.lastEvent[name]
		}
	}
	return last, true
}

// totals returns the number of events, and how many of them repeated what was known.
func (j *presenceJournal) totals() (events, repeated int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.events, j.repeated
}
