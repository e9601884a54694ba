package presence

import (
	"encoding/json"
	"slices"
	"sync/atomic"

	"switchboard/broker/dialect"
	"switchboard/broker/loop"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// Watcher is the connection behind a subscription. All methods are called on its loop.
type Watcher interface {
	// Client is who it is: nobody is told of his own coming.
	Client() string
	// Backlogged says that an earlier write has not gone out wholly.
	Backlogged() bool
	// Send sends an event to this connection. It may close the connection.
	Send(e wire.Event)
	// Write sends events that other connections share, and does not keep b. It may close the
	// connection.
	Write(b *dialect.Batch)
}

// Subscription is one connection that is told who comes and goes. It belongs to the connection's loop.
type Subscription struct {
	view     view
	watchers *loopWatchers
	watcher  Watcher
	loop     *loop.Loop
	index    int
	seq      int64 // what came up to here it knows
	stale    bool  // its socket was backed up: it is told what is, instead of what has changed
}

// subject is what one is told of: a channel, or a user.
type view interface {
	// state is what is, and the moment up to which it tells.
	snapshotEvent() (event wire.Event, moment int64)
	// opening is the state where a connection is told it before anything happens.
	initialEvent() (event wire.Event, moment int64, ok bool)
	// moment is that of now.
	currentSeq() int64
	release()
}

// listeners are the subscriptions of one loop. Only count is touched from elsewhere.
type loopWatchers struct {
	subs  []*Subscription
	count atomic.Int32
}

// listen begins to tell to of what happens behind this. It runs on l.
func subscribe(about view, list *loopWatchers, l *loop.Loop, to Watcher) *Subscription {
	s := &Subscription{view: about, watchers: list, watcher: to, loop: l, index: len(list.subs), seq: about.currentSeq()}
	list.subs = append(list.subs, s)
	list.count.Store(int32(len(list.subs)))
	return s
}

// Start tells a connection that follows a user that he is online, if he is. The caller has told it that it follows.
func (s *Subscription) Start() {
	if event, moment, ok := s.view.initialEvent(); ok {
		s.seq = moment
		s.watcher.Send(event)
	}
}

// Close ends it, on its loop.
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

// Resume tells a connection that was behind what is: its socket is writable again.
func (s *Subscription) Resume() {
	if !s.stale || s.watcher.Backlogged() {
		return
	}
	s.stale = false
	event, moment := s.view.snapshotEvent()
	s.seq = moment
	s.watcher.Send(event)
}

// Subscribe begins to tell to of what happens behind this. It runs on l, the connection's loop, and takes over what Watch held.
func (v *View) Subscribe(l *loop.Loop, to Watcher) *Subscription {
	return subscribe(v, &v.perLoop[l.Index], l, to)
}

func (v *View) snapshotEvent() (wire.Event, int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.snapshot(), v.members.seq
}

func (v *View) initialEvent() (event wire.Event, moment int64, ok bool) { return }

func (v *View) currentSeq() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.members.seq
}

func (v *View) release() { v.p.Release(v) }

// snapshot is who is there; of a large channel only how many.
func (v *View) snapshot() wire.Event {
	clients, users := v.members.count()
	event := wire.Event{Type: wire.TypePresence, Channel: v.channel, Count: &clients, Users: &users}
	if clients <= v.members.largeChannel {
		list := WireMembers(v.members.list())
		event.Clients = &list
	}
	return event
}

// tell lets everybody know of the change under way, at once or together with others.
func (v *View) publishChange() {
	joined, left := v.members.joined, v.members.left
	if len(joined)+len(left) == 0 {
		return
	}
	v.members.seq++
	if v.members.coalesce() {
		return
	}
	news := make([]notification, 0, len(joined)+len(left))
	for _, m := range left {
		news = append(news, v.notification(wire.TypeLeave, m, nil))
	}
	for _, m := range joined {
		news = append(news, v.notification(wire.TypeJoin, m, m.Info))
	}
	v.post(news)
}

// tellTogether tells what was kept.
func (v *View) publishCoalesced() {
	if !v.members.coalescing {
		return
	}
	steps, first := v.members.takeSteps()
	if len(steps) == 0 {
		return
	}
	clients, users := v.members.count()
	t := &coalescedChanges{v.p.opts.Messages, wire.Event{Type: wire.TypePresence, Channel: v.channel, Count: &clients, Users: &users}, first, steps}
	v.post([]notification{{message: t.message(first-1, ""), coalesced: t}})
}

// news is something to tell.
type notification struct {
	message   *dialect.Message  // for most watchers; nil for nothing
	client    string            // the client, empty for several
	coalesced *coalescedChanges // these
}

// special says whether somebody must be told something else, or nothing.
func (n notification) differsFor(told int64, self string) bool {
	if n.coalesced != nil {
		return n.coalesced.differsFor(told, self)
	}
	return n.client == self
}

func (v *View) notification(kind string, m registry.Member, info json.RawMessage) notification {
	event := wire.Event{Type: kind, Channel: v.channel, User: m.User, Client: m.Client, Info: info}
	return notification{message: v.p.opts.Messages.Event(event), client: m.Client}
}

func (v *View) post(list []notification) { v.perLoop.post(v.p.opts.Loops, list, v.members.seq) }

// audience is the listeners, by loop.Index.
type allWatchers []loopWatchers

// post has every loop with listeners tell them.
func (a allWatchers) post(loops []*loop.Loop, list []notification, moment int64) {
	for i := range a {
		l := &a[i]
		if l.count.Load() > 0 {
			loops[i].Post(func() { l.deliver(list, moment) })
		}
	}
}

// deliver runs on the loop.
func (l *loopWatchers) deliver(list []notification, moment int64) {
	var shared dialect.Batch
	for _, n := range list {
		if n.message != nil {
			shared.Messages = append(shared.Messages, n.message)
		}
	}
	for i := 0; i < len(l.subs); {
		s := l.subs[i]
		switch {
		case s.stale || s.seq >= moment:
		case s.watcher.Backlogged():
			s.stale = true
		default:
			told := s.seq
			s.seq = moment
			l.write(s, list, told, &shared)
		}
		if i < len(l.subs) && l.subs[i] == s { // a failed write takes the subscription out
			i++
		}
	}
}

// write tells one subscription, which knew all up to told.
func (l *loopWatchers) write(s *Subscription, list []notification, told int64, shared *dialect.Batch) {
	self := s.watcher.Client()
	if slices.ContainsFunc(list, func(n notification) bool { return n.differsFor(told, self) }) {
		shared = ownBatch(list, told, self)
	}
	if len(shared.Messages) > 0 {
		s.watcher.Write(shared)
	}
}

// ownBatch is the news for somebody who must not be told all of it.
func ownBatch(list []notification, told int64, self string) *dialect.Batch {
	var own dialect.Batch
	for _, n := range list {
		message := n.message
		switch {
		case !n.differsFor(told, self):
		case n.coalesced != nil:
			message = n.coalesced.message(told, self)
		default:
			continue
		}
		if message != nil {
			own.Messages = append(own.Messages, message)
		}
	}
	return &own
}

// WireMembers are members as a client is told them.
func WireMembers(members []registry.Member) []wire.Member {
	list := make([]wire.Member, len(members))
	for i, m := range members {
		list[i] = wire.Member{Client: m.Client, User: m.User, Info: m.Info}
		if !m.Since.IsZero() {
			list[i].Since = m.Since.UnixMilli()
		}
	}
	return list
}
