package session

import (
	"cmp"

	"switchboard/broker/hub"
	"switchboard/broker/transport"
	"switchboard/broker/work"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// maxReplies is how many bytes of workers' replies are written behind a backlog. A worker replies when
// it likes, so nothing else bounds what piles up behind a client that does not read.
const maxReplies = 64 << 10

// state is how far a session has come.
type state uint8

const (
	fresh      state = iota // no connect yet
	connecting              // connect is under way
	open
	closed
)

// Session is one client's connection. It lives on its loop. Most sessions are idle, so what that takes has no room to
// spare: 224 bytes, with two subscriptions in them. (With 10,000 connections each took 1.42 KB of memory, now 1.2. The
// allocator has room for exactly 224, and little that soon dies is that long and leaves holes.)
type Session struct {
	*shard // s.m is its Manager
	conn   transport.Conn

	client     string // its id, which begins with the user
	generation int64
	secret     queue.SecretHash // of a client without a user, to renew a record that the store has lost

	all, first hub.Subscription // to everyone's channel; and to the first of its own
	inbox      inbox
	extra      *extra // nil at rest

	expires uint32 // unix seconds, 0 for never
	heard   uint32 // tick of the last sign of life
	index   int32  // in shard.sessions
	state   state
	busy    bool // a call to the store is under way for a message of the client
	pinged  bool // since heard

	unasserted bool // the binding could not be renewed: the next tick tries again
}

// extra is what an idle session of one channel does without.
type extra struct {
	more    []*hub.Subscription // to other channels than the first
	waiting *line               // come while busy; nil for none
	pass    *pass               // what the token gives besides the user and its end, and what was used; nil for nothing
	pace    *pace               // what was used of its rates; nil for who sends no more than now and then
	backlog uint32              // the tick that found the socket backed up, without a break since, or 0
	replied int32               // bytes of replies written behind the backlog
	told    []told              // of whose coming and going it is told
}

// need is s.extra, to be changed.
func (s *Session) need() *extra {
	if s.extra == nil {
		s.extra = new(extra)
	}
	return s.extra
}

// spare lets s.extra go when there is nothing in it.
func (s *Session) spare() {
	if e := s.extra; e != nil && len(e.more) == 0 && e.waiting == nil && e.pass == nil && e.pace == nil && len(e.told) == 0 &&
		e.backlog == 0 && e.replied == 0 {
		s.extra = nil
	}
}

// Receive implements transport.Receiver.
func (s *Session) Receive(req wire.Request, size int) {
	if s.state == closed {
		return
	}
	paced := s.paced(req, size)
	if s.Heard(); paced {
		s.handle(req, size)
	}
}

// Malformed implements transport.Receiver.
func (s *Session) Malformed(ref wire.Ref, size int, err error, broken bool) {
	if s.state == closed {
		return
	}
	paced := s.paced(wire.Request{Ref: ref}, size)
	if s.Heard(); !paced {
		return
	}
	s.reject(ref, err)
	if broken || s.state == fresh {
		s.close(wire.CloseBadRequest, "not a JSON object of this protocol", 0)
	}
}

// handle acts on a message of size bytes at once, or lets it wait for its turn. A ping and an
// acknowledgement overtake others, except those that came with connect.
func (s *Session) handle(req wire.Request, size int) {
	if s.state == fresh && req.Type != wire.TypeConnect {
		s.start(req) // refuses it
		return
	}
	ping, ack := req.Type == wire.TypePing, req.Type == wire.TypeAck
	switch backlogged := s.conn.Backlogged(); {
	case req.Type == wire.TypePong:
	case ack && s.state == open, ping && s.state == open && !backlogged:
		s.start(req)
	case !ping && !s.busy && s.waiting() == 0 && !backlogged:
		s.start(req)
	default:
		s.wait(req, size)
	}
}

// start begins to act on a message whose turn it is.
func (s *Session) start(req wire.Request) {
	if s.state == fresh && req.Type != wire.TypeConnect {
		s.refuse(req.Ref, wire.Errorf(wire.BadRequest, "%.40s: connect comes first", req.Type))
		s.close(wire.CloseBadRequest, "connect comes first", 0)
		return
	}
	switch req.Type {
	case wire.TypePing:
		s.pong(req)
	case wire.TypeAck:
		s.ack(req)
	case wire.TypeConnect:
		s.connect(req)
	case wire.TypeSubscribe:
		s.subscribe(req)
	case wire.TypeUnsubscribe:
		s.unsubscribe(req)
	case wire.TypePublish:
		s.publish(req)
	case wire.TypeHistory:
		s.history(req)
	case wire.TypePresence:
		s.presence(req)
	case wire.TypeRequest:
		s.request(req)
	case wire.TypeRefresh:
		s.refresh(req)
	default:
		s.refuse(req.Ref, wire.Errorf(wire.BadRequest, "type: %.40q is not known", req.Type))
	}
}

// call runs work in the pool and then, on the loop, finish with its result. Until then
// further messages wait. finish is also called when the session has ended meanwhile.
func call[T any](s *Session, work func() (T, error), finish func(T, error)) {
	callIn(s.m.opts.Pool, s, work, finish)
}

// callIn is call in a given pool.
func callIn[T any](pool *work.Pool, s *Session, work func() (T, error), finish func(T, error)) {
	s.busy = true
	pool.Go(func() {
		result, err := work()
		s.shard.loop.Post(func() {
			s.busy = false
			s.corked(func() {
				finish(result, err)
				s.next()
			})
		})
	})
}

// TooLarge is transport.Receiver's.
func (s *Session) TooLarge() {
	paced := s.state != closed && s.paced(wire.Request{}, 0) // Control has counted the bytes
	s.Heard()
	if !paced {
		return
	}
	limit := s.m.opts.Limits.Message
	if s.state == fresh {
		limit = min(limit, transport.MaxFirst)
	}
	s.reject(wire.Ref{}, wire.Errorf(wire.TooLarge, "the message was skipped: at most %d bytes are allowed", limit))
	if s.state == fresh {
		s.close(wire.CloseBadRequest, "connect comes first", 0)
	}
}

// Broken is transport.Receiver's.
func (s *Session) Broken(string) { s.end(wire.CloseBadRequest) }

// Control implements transport.Receiver.
func (s *Session) Control(frames, size int) bool {
	paced := s.state != closed && s.pacedControl(frames, size)
	s.Heard()
	return paced
}

// Heard notes a sign of life. The time for connect is not made longer by anything else.
func (s *Session) Heard() {
	if s.state == fresh {
		return
	}
	s.heard = s.m.now.Load()
	s.pinged = false
}

// Writable is transport.Receiver's.
func (s *Session) Writable() {
	s.Heard() // it reads, though its answer to a ping may still be behind much else
	s.caughtUp()
	s.inboxWritten()
	for sub := range s.subs() {
		sub.Resume()
	}
	for i := 0; i < len(s.followed()); i++ {
		s.followed()[i].sub.Resume()
	}
	s.next()
}

// Closed is transport.Receiver's.
func (s *Session) Closed() { s.end(wire.CloseGone) }

// close tells the client why and ends the session.
func (s *Session) close(reason wire.CloseReason, detail string, afterMS int64) {
	if s.state == closed {
		return
	}
	s.end(reason)
	s.conn.Close(reason, detail, afterMS)
}

// end forgets the session: nothing refers to the connection any more when it returns.
func (s *Session) end(reason wire.CloseReason) {
	if s.state == closed {
		return
	}
	bound := s.state == open
	if w := s.shard.wishing[s]; w != nil {
		w.gone.Store(true)
	}
	s.state = closed
	for sub := range s.subs() {
		s.goOut(sub)
		s.m.opts.Hub.Unsubscribe(sub)
	}
	for len(s.followed()) > 0 {
		s.untold(0)
	}
	s.extra = nil
	s.shard.remove(s)
	s.m.opts.Metrics.Closed(string(reason))
	if bound {
		s.m.forget(s)
		s.m.unbindLater(binding{s.client, s.generation, s.inbox.owed()})
	}
}

// tick is the session's housekeeping, when due says so.
func (s *Session) tick(now uint32, unix int64) {
	o := &s.m.ticks
	silent := now - s.heard
	ping, idle := s.liveness()
	switch {
	case s.state != open:
		if silent >= o.connect {
			s.close(wire.CloseBadRequest, "no connect in time", 0)
		}
		return
	case s.expires != 0 && unix >= int64(s.expires):
		s.close(wire.CloseExpired, "the token ran out", 0)
		return
	case silent >= idle:
		s.close(wire.CloseIdle, "no sign of life", 0)
		return
	case silent >= ping && !s.pinged:
		if s.conn.Ping(); idle == never { // no answer will come: the next ping is due as late as this one was
			s.heard = now
		} else {
			s.pinged = true
		}
	}
	if s.state == closed { // by the write of the ping
		return
	}
	if s.conn.Backlogged() {
		e := s.need()
		if e.backlog = cmp.Or(e.backlog, now); now+1-e.backlog >= o.slow {
			s.close(wire.CloseSlow, "unread for too long", 0)
			return
		}
	} else {
		s.caughtUp()
		s.inboxRetry()
	}
	if s.unasserted {
		s.assertLater()
	}
	s.calm()
}

// caughtUp begins anew to count what happens behind a backlog.
func (s *Session) caughtUp() {
	if s.extra != nil {
		s.extra.backlog, s.extra.replied = 0, 0
		s.spare()
	}
}
