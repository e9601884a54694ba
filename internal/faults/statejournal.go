package main

import (
	"slices"
	"sync"
	"time"

	"switchboard/internal/state"
)

// stateJournal records what happened to the states of channels: the updates that writers made, and
// what subscribers received. It asks no broker.
type stateJournal struct {
	mu          sync.Mutex // guards the fields below
	calls       []updateCall
	subscribers map[string]*stateSubscriber // by client
	seen        map[entryKey]time.Time      // first arrival of a message that changes fields, at any subscriber
	owners      map[string]*ownerRecord     // clients that disappear with their broker
	faultEnded  time.Time
	oversold    int // in the fields of subscribers
	evidence    evidence
}

// entryKey identifies a message of a channel.
type entryKey struct {
	channel string
	id      int64
}

// stateSubscriber holds what one client received about the state of one channel.
type stateSubscriber struct {
	channel     string
	readyAt     time.Time      // when the first pages had arrived
	ids         map[int64]bool // of the messages that changed fields
	pages       []int64        // ids of the complete series of pages
	seats       int            // seats in the fields that it holds
	gaps        []gap
	connections []connection
}

// connection is a time during which a client was connected to a server.
type connection struct {
	server   string
	from, to time.Time // to is zero while it lasts
}

// ownerRecord is a client that owns a field and disappears with its broker.
type ownerRecord struct {
	channel     string
	endedAt     time.Time // when its broker died; zero before
	away, ended time.Time // when a subscriber learned that; zero before
}

func newStateJournal() *stateJournal {
	return &stateJournal{
		subscribers: map[string]*stateSubscriber{}, seen: map[entryKey]time.Time{}, owners: map[string]*ownerRecord{}, evidence: evidence{},
	}
}

func (j *stateJournal) update(f func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f()
}

// updated records an accepted update, and refused one that the broker refused.
func (j *stateJournal) updated(c updateCall) { j.update(func() { j.calls = append(j.calls, c) }) }

func (j *stateJournal) refused(c updateCall) {
	if !passingCodes[c.refusal.code] {
		j.update(func() { j.calls = append(j.calls, c) })
	}
}

// faultEnds records the end of the fault.
func (j *stateJournal) faultEnds(at time.Time) { j.update(func() { j.faultEnded = at }) }

// subscriberLocked returns the record of a client, and creates it.
func (j *stateJournal) subscriberLocked(client, channel string) *stateSubscriber {
	s := j.subscribers[client]
	if s == nil {
		s = &stateSubscriber{channel: channel, ids: map[int64]bool{}}
		j.subscribers[client] = s
	}
	return s
}

// connected records that a client is connected to a server, "" for none.
func (j *stateJournal) connected(client, channel, server string, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.subscriberLocked(client, channel)
	if n := len(s.connections); n > 0 && s.connections[n-1].to.IsZero() {
		s.connections[n-1].to = at
	}
	if server != "" {
		s.connections = append(s.connections, connection{server: server, from: at})
	}
}

// pages records a complete series of pages.
func (j *stateJournal) pages(client, channel string, id int64, fields map[string]state.Shown, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.subscriberLocked(client, channel)
	if s.readyAt.IsZero() {
		s.readyAt = at
	}
	s.pages, s.seats = append(s.pages, id), countSeats(fields)
}

// message records a message that changed fields, and the fields after it.
func (j *stateJournal) message(client, channel string, id int64, away, gone []string, fields map[string]state.Shown, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.subscriberLocked(client, channel)
	s.ids[id] = true
	if key := (entryKey{channel, id}); j.seen[key].IsZero() {
		j.seen[key] = at
	}
	for _, field := range away {
		if owner, owned := ownerOf(field); owned && j.owners[owner] != nil && j.owners[owner].away.IsZero() {
			j.owners[owner].away = at
		}
	}
	for _, field := range gone {
		if owner, owned := ownerOf(field); owned && j.owners[owner] != nil && j.owners[owner].ended.IsZero() {
			j.owners[owner].ended = at
		}
	}
	for _, fault := range overLimits(fields, s.seats) {
		j.oversold++
		j.evidence.add("oversold", "%s holds, in %s at id %d: %s", client, channel, id, fault)
	}
	s.seats = countSeats(fields)
}

// gap records a gap.
func (j *stateJournal) gap(client string, g gap) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.subscriberLocked(client, g.queue)
	s.gaps = append(s.gaps, g)
}

// ownerStarts records a client that owns a field and will disappear.
func (j *stateJournal) ownerStarts(client, channel string) {
	j.update(func() { j.owners[client] = &ownerRecord{channel: channel} })
}

// ownersDie records that the broker of these clients has died, and they with it.
func (j *stateJournal) ownersDie(at time.Time) {
	j.update(func() {
		for _, o := range j.owners {
			o.endedAt = at
		}
	})
}

// mustLearn reports whether the subscriber must learn of an accepted update.
func (s *stateSubscriber) mustLearn(call updateCall) bool {
	return s.channel == call.channel && !s.readyAt.IsZero() && s.readyAt.Before(call.firstTry)
}

// missed reports whether the subscriber must learn of an accepted update, and did not.
func (s *stateSubscriber) missed(call updateCall) bool {
	return s.mustLearn(call) && !s.declared(call.id, call.ended)
}

// declared reports whether the subscriber received a change, or the fields after it, or a gap that
// declares that it is missing.
func (s *stateSubscriber) declared(id int64, accepted time.Time) bool {
	return s.ids[id] || slices.ContainsFunc(s.pages, func(page int64) bool { return page >= id }) ||
		slices.ContainsFunc(s.gaps, func(g gap) bool { return g.covers(s.channel, id, accepted) })
}

// connectedThroughout reports whether the client was connected during all of the time, to a server
// other than this one.
func (s *stateSubscriber) connectedThroughout(from, to time.Time, except string) bool {
	return slices.ContainsFunc(s.connections, func(c connection) bool {
		return c.server != except && !c.from.After(from) && (c.to.IsZero() || !c.to.Before(to))
	})
}
