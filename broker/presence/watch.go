package presence

import (
	"encoding/json"
	"math"
	"slices"
	"sync/atomic"

	"switchboard/broker/dialect"
	"switchboard/broker/loop"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// Watcher is the connection that receives joins and leaves. All methods are called on its loop.
type Watcher interface {
	// Client returns the client's id. A watcher does not receive its own joins and leaves. In a
	// channel that shows aliases it does receive those of its alias, since it has it only at times.
	Client() string
	// Backlogged reports whether an earlier write has not been sent completely.
	Backlogged() bool
	// Send sends an event to this connection. It may close the connection.
	Send(e wire.Event)
	// Write sends events that other connections share, and does not keep b. It may close the
	// connection.
	Write(b *dialect.Batch)
}

// Subscription is a watcher's subscription to a view. It belongs to the watcher's loop.
type Subscription struct {
	view     view
	watchers *loopWatchers
	watcher  Watcher
	loop     *loop.Loop
	known    knowledge
	hereSeq  int64 // the watcher knows all changes of here values up to this one
	index    int32 // in watchers.subs

	// The socket was backed up: Resume sends a snapshot instead of the changes, or the newest here
	// values.
	stale, hereMissed bool
}

// knowledge is what a watcher knows of the changes of a view.
type knowledge struct {
	seq int64 // all changes up to this one

	// Pages of the members since then have shown the states from the change seq+pagedFrom to
	// seq+pagedTo. Without such pages, pagedTo is 0.
	pagedFrom, pagedTo uint32
}

// advance notes that the watcher knows all changes up to seq.
func (k *knowledge) advance(seq int64) {
	n := uint32(min(seq-k.seq, math.MaxUint32))
	k.seq, k.pagedFrom, k.pagedTo = seq, k.pagedFrom-min(k.pagedFrom, n), k.pagedTo-min(k.pagedTo, n)
}

// page notes that the watcher has a page of the state after change seq.
func (k *knowledge) page(seq int64) {
	n := uint32(min(max(seq-k.seq, 0), math.MaxUint32))
	if k.pagedTo == 0 {
		k.pagedFrom = n
	}
	k.pagedTo = max(k.pagedTo, n)
}

// view is what a watcher can watch: a channel ([View]) or a user ([UserView]).
type view interface {
	// snapshotEvent returns the current state and its seq.
	snapshotEvent() (event wire.Event, seq int64)
	// initialEvent returns the state that a new watcher receives first, if any, and its seq.
	initialEvent() (event wire.Event, seq int64, ok bool)
	// currentSeq returns the seq of the last change.
	currentSeq() int64
	// release gives up the reference that the subscription holds.
	release()
}

// loopWatchers holds the subscriptions of one loop. Other goroutines touch only count.
type loopWatchers struct {
	subs     []*Subscription
	count    atomic.Int32
	hereUpTo int64 // the last changes of here values that were delivered
}

// subscribe adds a watcher, which receives all later changes. It runs on l.
func subscribe(v view, list *loopWatchers, l *loop.Loop, w Watcher) *Subscription {
	s := &Subscription{view: v, watchers: list, watcher: w, loop: l, index: int32(len(list.subs)), known: knowledge{seq: v.currentSeq()}}
	list.subs = append(list.subs, s)
	list.count.Store(int32(len(list.subs)))
	return s
}

// Start sends a join to the watcher of a user who is online. The caller must have confirmed the
// subscription to the client.
func (s *Subscription) Start() {
	if event, seq, ok := s.view.initialEvent(); ok {
		s.known.advance(seq)
		s.watcher.Send(event)
	}
}

// showsAliases reports whether s watches a channel that shows aliases.
func (s *Subscription) showsAliases() bool {
	v, ok := s.view.(*View)
	return ok && v.aliased.Load()
}

// Close ends the subscription. It runs on the watcher's loop.
func (s *Subscription) Close() {
	list := s.watchers
	last := len(list.subs) - 1
	list.subs[s.index] = list.subs[last]
	list.subs[s.index].index = s.index
	list.subs[last] = nil
	list.subs = list.subs[:last]
	list.count.Store(int32(last))
	s.view.release()
}

// Resume sends to a watcher whose socket is writable again what it missed: a snapshot, or the
// newest here values.
func (s *Subscription) Resume() {
	switch {
	case !s.stale && !s.hereMissed || s.watcher.Backlogged():
		return
	case !s.stale && s.resumeHere():
		return
	}
	s.stale, s.hereMissed = false, false
	if v, ok := s.view.(*View); ok {
		s.hereSeq = v.p.here.seq.Load() // the snapshot has the values
	}
	event, seq := s.view.snapshotEvent()
	s.known.advance(seq)
	s.watcher.Send(event)
}

// Subscribe adds a watcher, which receives all later changes. It runs on l, the watcher's loop, and
// takes over the reference that Watch returned.
func (v *View) Subscribe(l *loop.Loop, w Watcher) *Subscription {
	s := subscribe(v, &v.perLoop[l.Index], l, w)
	s.hereSeq = v.p.here.seq.Load()
	return s
}

func (v *View) snapshotEvent() (wire.Event, int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.snapshotLocked(), v.members.seq
}

func (v *View) initialEvent() (event wire.Event, seq int64, ok bool) { return }

func (v *View) currentSeq() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.members.seq
}

func (v *View) release() { v.p.Release(v) }

// snapshotLocked returns the event with all members, or, for a large channel, only their number.
func (v *View) snapshotLocked() wire.Event {
	clients, users := v.members.count()
	event := wire.Event{Type: wire.TypePresence, Channel: v.channel, Count: &clients, Users: &users}
	if clients <= v.members.largeChannel {
		members := v.members.list()
		list := withHere(members, v.p.hereOf(v.channel, members, true))
		event.Clients = &list
	}
	return event
}

// publishChangeLocked sends the current change to the watchers, or keeps it to be coalesced.
func (v *View) publishChangeLocked() {
	joined, left := v.members.joined, v.members.left
	if len(joined)+len(left) == 0 {
		return
	}
	v.members.seq++
	if v.members.coalesce() {
		return
	}
	list := make([]notification, 0, len(joined)+len(left))
	for _, m := range left {
		list = append(list, v.newNotification(wire.TypeLeave, m, nil))
	}
	for _, m := range joined {
		list = append(list, v.newNotification(wire.TypeJoin, m, m.Info))
	}
	v.postLocked(list)
}

// publishCoalescedLocked sends the changes that were kept.
func (v *View) publishCoalescedLocked() {
	if !v.members.coalescing {
		return
	}
	steps, firstSeq := v.members.takeSteps()
	if len(steps) == 0 {
		return
	}
	clients, users := v.members.count()
	c := &coalescedChanges{v.p.opts.Messages, wire.Event{Type: wire.TypePresence, Channel: v.channel, Count: &clients, Users: &users}, firstSeq, steps}
	v.postLocked([]notification{{message: c.message(knowledge{seq: firstSeq - 1}, ""), coalesced: c}})
}

// notification is an event for the watchers.
type notification struct {
	message   *dialect.Message  // for most watchers; nil if they receive nothing
	client    string            // the client that joined or left; empty for several
	coalesced *coalescedChanges // the changes, if there are several
}

// differsFor reports whether the watcher self must not receive the message that most watchers
// receive.
func (n notification) differsFor(k knowledge, self string) bool {
	if n.coalesced != nil {
		return n.coalesced.differsFor(k, self)
	}
	return n.client == self
}

// newNotification returns the notification of one join or leave.
func (v *View) newNotification(kind string, m registry.Member, info json.RawMessage) notification {
	shown := forClients(m)
	event := wire.Event{Type: kind, Channel: v.channel, User: shown.User, Client: shown.Client, Info: info}
	return notification{message: v.p.opts.Messages.Event(event), client: m.Client}
}

func (v *View) postLocked(list []notification) { v.perLoop.post(v.p.opts.Loops, list, v.members.seq) }

// allWatchers holds the watchers by loop.Index.
type allWatchers []loopWatchers

// post makes every loop that has watchers deliver the notifications.
func (a allWatchers) post(loops []*loop.Loop, list []notification, seq int64) {
	for i := range a {
		l := &a[i]
		if l.count.Load() > 0 {
			loops[i].Post(func() { l.deliver(list, seq) })
		}
	}
}

// deliver writes the notifications to the loop's watchers. It runs on the loop.
func (l *loopWatchers) deliver(list []notification, seq int64) {
	var shared dialect.Batch
	for _, n := range list {
		if n.message != nil {
			shared.Messages = append(shared.Messages, n.message)
		}
	}
	for i := 0; i < len(l.subs); {
		s := l.subs[i]
		switch {
		case s.stale || s.known.seq >= seq:
		case s.watcher.Backlogged():
			s.stale = true
		default:
			known := s.known
			s.known.advance(seq)
			l.write(s, list, known, &shared)
		}
		if i < len(l.subs) && l.subs[i] == s { // a failed write removes the subscription
			i++
		}
	}
}

// write writes to one watcher. known is what it knew before.
func (l *loopWatchers) write(s *Subscription, list []notification, known knowledge, shared *dialect.Batch) {
	self := s.watcher.Client()
	if s.showsAliases() {
		self = "" // the watcher receives the joins and leaves of its alias
	}
	if slices.ContainsFunc(list, func(n notification) bool { return n.differsFor(known, self) }) {
		shared = ownBatch(list, known, self)
	}
	if len(shared.Messages) > 0 {
		s.watcher.Write(shared)
	}
}

// ownBatch returns the batch for a watcher that needs other messages than most.
func ownBatch(list []notification, known knowledge, self string) *dialect.Batch {
	var own dialect.Batch
	for _, n := range list {
		message := n.message
		switch {
		case !n.differsFor(known, self):
		case n.coalesced != nil:
			message = n.coalesced.message(known, self)
		default:
			continue // its own join or leave
		}
		if message != nil {
			own.Messages = append(own.Messages, message)
		}
	}
	return &own
}

// WireMembers converts members to the form that clients receive.
func WireMembers(members []registry.Member) []wire.Member { return wireMembers(members, forClients) }

// wireMembers is WireMembers for readers that see each member as shown returns it.
func wireMembers(members []registry.Member, shown func(registry.Member) registry.Member) []wire.Member {
	list := make([]wire.Member, len(members))
	for i, m := range members {
		m = shown(m)
		list[i] = wire.Member{Client: m.Client, User: m.User, Info: m.Info}
		if !m.Since.IsZero() {
			list[i].Since = m.Since.UnixMilli()
		}
	}
	return list
}
