package presence

import (
	"encoding/json"
	"slices"
	"sync/atomic"

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
	// Write sends a batch, which is not kept. It may close the connection.
	Write(b *wire.Batch)
}

// Subscription is one connection that is told who comes and goes. It belongs to the connection's loop.
type Subscription struct {
	about  subject
	list   *listeners
	to     Watcher
	loop   *loop.Loop
	index  int
	told   int64 // what came up to here it knows
	behind bool  // its socket was backed up: it is told what is, instead of what has changed
}

// subject is what one is told of: a channel, or a user.
type subject interface {
	// state is what is, and the moment up to which it tells.
	state() (event wire.Event, moment int64)
	// opening is the state where a connection is told it before anything happens.
	opening() (event wire.Event, moment int64, ok bool)
	// moment is that of now.
	moment() int64
	release()
}

// listeners are the subscriptions of one loop. Only count is touched from elsewhere.
type listeners struct {
	subs  []*Subscription
	count atomic.Int32
}

// listen begins to tell to of what happens behind this. It runs on l.
func listen(about subject, list *listeners, l *loop.Loop, to Watcher) *Subscription {
	s := &Subscription{about: about, list: list, to: to, loop: l, index: len(list.subs), told: about.moment()}
	list.subs = append(list.subs, s)
	list.count.Store(int32(len(list.subs)))
	return s
}

// Start tells a connection that follows a user that he is online, if he is. The caller has told it that it follows.
func (s *Subscription) Start() {
	if event, moment, ok := s.about.opening(); ok {
		s.told = moment
		s.to.Write(&wire.Batch{Frames: []wire.Frame{event.Encode()}})
	}
}

// Close ends it, on its loop.
func (s *Subscription) Close() {
	list := s.list
	last := len(list.subs) - 1
	list.subs[s.index] = list.subs[last]
	list.subs[s.index].index = s.index
	list.subs[last] = nil
	list.subs = list.subs[:last]
	list.count.Store(int32(last))
	s.about.release()
}

// Resume tells a connection that was behind what is: its socket is writable again.
func (s *Subscription) Resume() {
	if !s.behind || s.to.Backlogged() {
		return
	}
	s.behind = false
	event, moment := s.about.state()
	s.told = moment
	s.to.Write(&wire.Batch{Frames: []wire.Frame{event.Encode()}})
}

// Subscribe begins to tell to of what happens behind this. It runs on l, the connection's loop, and takes over what Watch held.
func (v *View) Subscribe(l *loop.Loop, to Watcher) *Subscription {
	return listen(v, &v.perLoop[l.Index], l, to)
}

func (v *View) state() (wire.Event, int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.snapshot(), v.crowd.moment
}

func (v *View) opening() (event wire.Event, moment int64, ok bool) { return }

func (v *View) moment() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.crowd.moment
}

func (v *View) release() { v.p.Release(v) }

// snapshot is who is there; of a large channel only how many.
func (v *View) snapshot() wire.Event {
	clients, users := v.crowd.count()
	event := wire.Event{Type: wire.TypePresence, Channel: v.channel, Count: &clients, Users: &users}
	if clients <= v.crowd.large {
		list := WireMembers(v.crowd.members())
		event.Clients = &list
	}
	return event
}

// tell lets everybody know of the change under way, at once or together with others.
func (v *View) tell() {
	joined, left := v.crowd.joined, v.crowd.left
	if len(joined)+len(left) == 0 {
		return
	}
	v.crowd.moment++
	if v.crowd.keep() {
		return
	}
	news := make([]news, 0, len(joined)+len(left))
	for _, m := range left {
		news = append(news, v.news(wire.TypeLeave, m, nil))
	}
	for _, m := range joined {
		news = append(news, v.news(wire.TypeJoin, m, m.Info))
	}
	v.post(news)
}

// tellTogether tells what was kept.
func (v *View) tellTogether() {
	if !v.crowd.together {
		return
	}
	steps, first := v.crowd.kept()
	if len(steps) == 0 {
		return
	}
	clients, users := v.crowd.count()
	t := &together{wire.Event{Type: wire.TypePresence, Channel: v.channel, Count: &clients, Users: &users}, first, steps}
	v.post([]news{{frame: t.frame(first-1, ""), together: t}})
}

// news is something to tell.
type news struct {
	frame    wire.Frame // for most; empty for nothing
	about    string     // the client, empty for several
	together *together  // these
}

// special says whether somebody must be told something else, or nothing.
func (n news) special(told int64, self string) bool {
	if n.together != nil {
		return n.together.special(told, self)
	}
	return n.about == self
}

func (v *View) news(kind string, m registry.Member, info json.RawMessage) news {
	event := wire.Event{Type: kind, Channel: v.channel, User: m.User, Client: m.Client, Info: info}
	return news{frame: event.Encode(), about: m.Client}
}

func (v *View) post(list []news) { v.perLoop.post(v.p.opts.Loops, list, v.crowd.moment) }

// audience is the listeners, by loop.Index.
type audience []listeners

// post has every loop with listeners tell them.
func (a audience) post(loops []*loop.Loop, list []news, moment int64) {
	for i := range a {
		l := &a[i]
		if l.count.Load() > 0 {
			loops[i].Post(func() { l.deliver(list, moment) })
		}
	}
}

// deliver runs on the loop.
func (l *listeners) deliver(list []news, moment int64) {
	var shared wire.Batch
	for _, n := range list {
		if n.frame.Size() > 0 {
			shared.Frames = append(shared.Frames, n.frame)
		}
	}
	for i := 0; i < len(l.subs); {
		s := l.subs[i]
		switch {
		case s.behind || s.told >= moment:
		case s.to.Backlogged():
			s.behind = true
		default:
			told := s.told
			s.told = moment
			l.write(s, list, told, &shared)
		}
		if i < len(l.subs) && l.subs[i] == s { // a failed write takes the subscription out
			i++
		}
	}
}

// write tells one subscription, which knew all up to told.
func (l *listeners) write(s *Subscription, list []news, told int64, shared *wire.Batch) {
	self := s.to.Client()
	if slices.ContainsFunc(list, func(n news) bool { return n.special(told, self) }) {
		shared = ownBatch(list, told, self)
	}
	if len(shared.Frames) > 0 {
		s.to.Write(shared)
	}
}

// ownBatch is the news for somebody who must not be told all of it.
func ownBatch(list []news, told int64, self string) *wire.Batch {
	var own wire.Batch
	for _, n := range list {
		frame := n.frame
		switch {
		case !n.special(told, self):
		case n.together != nil:
			frame = n.together.frame(told, self)
		default:
			continue
		}
		if frame.Size() > 0 {
			own.Frames = append(own.Frames, frame)
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
