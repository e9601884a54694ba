package session

import (
	"errors"

	"switchboard/broker/hub"
	"switchboard/broker/transport"
	"switchboard/broker/work"
	"switchboard/internal/meter"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// phase is how far a session has come. It only moves forward.
type phase uint8

const (
	fresh      phase = iota // before connect
	connecting              // while the client is being bound
	open                    // the client is bound and has been sent `connected`
	closed                  // the connection has ended or is being closed
)

// Session is the state of one client's connection. Only the connection's loop uses it.
//
// Most sessions are idle, so the size of an idle session counts: 224 bytes with two subscriptions,
// for which the allocator has a size class. Few short-lived objects have that size class, so its
// pages hold mostly sessions. This reduced the memory per connection from 1.42 to 1.2 KB, at 10,000
// connections.
type Session struct {
	*shard // of the connection's loop; s.m is shard.m, the Manager
	conn   transport.Conn

	client     string // the id, which begins with the user
	generation int64
	credential credential

	allSub, firstSub hub.Subscription // to the $all channel, and to the first other channel
	inbox            inbox
	extra            *extra // nil while all its fields are zero

	expires   uint32 // unix seconds, 0 for never
	lastHeard uint32 // the tick at which the client was last heard
	index     int32  // in shard.sessions
	state     phase
	busy      bool // a call for a message of the client is under way
	pinged    bool // since lastHeard

	mustRenew bool // the binding was lost or not renewed: the next tick renews it
}

// extra is state that an idle session with one channel does not need.
type extra struct {
	moreSubs     []*hub.Subscription // to the channels after the first
	waiting      *waitingMessages    // nil for none
	profile      *profile            // nil for none
	rateUse      *rateUse            // nil for none
	backlogSince uint32              // the tick at which the socket was first found backed up, 0 if it is not
	replyBytes   int32               // bytes of replies written during the backlog
	watches      watchList
}

// ensureExtra returns s.extra. It creates one if there is none.
func (s *Session) ensureExtra() *extra {
	if s.extra == nil {
		s.extra = new(extra)
	}
	return s.extra
}

// dropEmptyExtra drops s.extra if all its fields are zero.
func (s *Session) dropEmptyExtra() {
	if e := s.extra; e != nil && len(e.moreSubs) == 0 && e.waiting == nil && e.profile == nil && e.rateUse == nil &&
		len(e.watches) == 0 && e.backlogSince == 0 && e.replyBytes == 0 {
		s.extra = nil
	}
}

// Receive implements transport.Receiver.
func (s *Session) Receive(req wire.Request, size int) {
	if s.state == closed {
		return
	}
	accepted := s.takeRates(req, size)
	s.noteHeard()
	if accepted {
		s.handle(req, size)
	}
}

// Malformed implements transport.Receiver.
func (s *Session) Malformed(ref wire.Ref, size int, err error, broken bool) {
	if s.state == closed {
		return
	}
	accepted := s.takeRates(wire.Request{Ref: ref}, size)
	s.noteHeard()
	if !accepted {
		return
	}
	s.refuseUnqueued(ref, err)
	if broken || s.state == fresh {
		s.close(wire.CloseBadRequest, "not a JSON object of this protocol", 0)
	}
}

// handle dispatches a message of size bytes, or queues it after those that wait. Once the session
// is open, an acknowledgement overtakes waiting messages. A ping does too, unless the socket is
// backed up.
func (s *Session) handle(req wire.Request, size int) {
	if s.state == fresh && req.Type != wire.TypeConnect {
		s.dispatch(req) // refuses it
		return
	}
	ping, ack := req.Type == wire.TypePing, req.Type == wire.TypeAck
	switch backlogged := s.conn.Backlogged(); {
	case req.Type == wire.TypePong:
	case ack && s.state == open, ping && s.state == open && !backlogged:
		s.dispatch(req)
	case !ping && !s.busy && s.waiting() == 0 && !backlogged:
		s.dispatch(req)
	default:
		s.enqueue(req, size)
	}
}

// dispatch calls the handler of a message.
func (s *Session) dispatch(req wire.Request) {
	if s.state == fresh && req.Type != wire.TypeConnect {
		s.refuse(req.Ref, wire.Errorf(wire.BadRequest, "%.40s: connect comes first", req.Type))
		s.close(wire.CloseBadRequest, "connect comes first", 0)
		return
	}
	if !s.mayReadFor(&req) {
		return
	}
	switch req.Type {
	case wire.TypePing:
		s.send(wire.Event{Type: wire.TypePong, Ref: req.Ref})
	case wire.TypeAck:
		s.inbox.ack(s, req)
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
	case wire.TypeState:
		s.readState(req)
	case wire.TypePresence:
		s.presence(req)
	case wire.TypeHere:
		s.here(req)
	case wire.TypeRequest:
		s.request(req)
	case wire.TypeRefresh:
		s.refresh(req)
	default:
		s.refuse(req.Ref, wire.Errorf(wire.BadRequest, "type: %.40q is not known", req.Type))
	}
}

// call runs job in the pool and then finish with its result on the loop. Until then further
// messages wait. finish is also called if the session has closed meanwhile. The connection and the
// sender are charged for what the job reads from the store in contexts with the Meter that it gets.
// paid is the weight of the message, see chargeRead.
func call[T any](s *Session, paid int, job func(read *meter.Meter) (T, error), finish func(T, error)) {
	callIn(s.m.opts.Pool, s, paid, job, finish)
}

// callIn is call with a given pool.
func callIn[T any](pool *work.Pool, s *Session, paid int, job func(read *meter.Meter) (T, error), finish func(T, error)) {
	read, by, senders := new(meter.Meter), s.sender(), s.m.senders
	callUncharged(pool, s, func() (T, error) {
		result, err := job(read)
		senders.TakeRead(by, read.Read())
		return result, err
	}, func(result T, err error) {
		s.chargeRead(read.Bytes(), paid)
		finish(result, err)
	})
}

// callUncharged is callIn for a job that reads no more than the message has paid for.
func callUncharged[T any](pool *work.Pool, s *Session, job func() (T, error), finish func(T, error)) {
	s.busy = true
	pool.Go(func() {
		result, err := job()
		s.shard.loop.Post(func() {
			s.busy = false
			s.corked(func() {
				finish(result, err)
				s.handleWaiting()
			})
		})
	})
}

// TooLarge implements transport.Receiver.
func (s *Session) TooLarge(ref wire.Ref) {
	accepted := s.state != closed && s.takeRates(wire.Request{Ref: ref}, 0) // 0: calls of Control have taken the bytes already
	s.noteHeard()
	if !accepted {
		return
	}
	limit := s.m.opts.Limits.Message
	if s.state == fresh {
		limit = min(limit, transport.MaxFirst)
	}
	s.refuseUnqueued(ref, wire.Errorf(wire.TooLarge, "the message was skipped: at most %d bytes are allowed", limit))
	if s.state == fresh {
		s.close(wire.CloseBadRequest, "connect comes first", 0)
	}
}

// Broken implements transport.Receiver.
func (s *Session) Broken(string) { s.end(wire.CloseBadRequest) }

// Control implements transport.Receiver.
func (s *Session) Control(frames, size int) bool {
	accepted := s.state != closed && s.takeControlRates(frames, size)
	s.noteHeard()
	return accepted
}

// noteHeard notes that the client is alive. Before connect it does nothing, because only connect
// may prevent the connect timeout.
func (s *Session) noteHeard() {
	if s.state == fresh {
		return
	}
	s.lastHeard = s.m.currentTick.Load()
	s.pinged = false
}

// Writable implements transport.Receiver.
func (s *Session) Writable() {
	s.noteHeard() // the client reads; its pong may still be queued after other messages
	s.resetBacklog()
	s.inbox.afterWrite(s)
	s.continuePages()
	for sub := range s.subs() {
		sub.Resume()
	}
	for i := 0; i < len(s.watches()); i++ { // a write may close the session
		s.watches()[i].sub.Resume()
	}
	s.handleWaiting()
}

// Closed implements transport.Receiver.
func (s *Session) Closed() { s.end(wire.CloseGone) }

// close ends the session and sends the client the reason. detail is the message, "" for that of the
// reason. If afterMS is not 0, the client is asked to reconnect after that many milliseconds.
func (s *Session) close(reason wire.CloseReason, detail string, afterMS int64) {
	if s.state == closed {
		return
	}
	s.end(reason)
	s.conn.Close(reason, detail, afterMS)
}

// end ends the session: its subscriptions, its watches and its binding.
func (s *Session) end(reason wire.CloseReason) {
	if s.state == closed {
		return
	}
	bound := s.state == open
	if j := s.shard.connecting[s]; j != nil {
		j.gone.Store(true)
	}
	s.state = closed
	for sub := range s.subs() {
		s.leavePresence(sub)
		s.m.opts.Hub.Unsubscribe(sub)
	}
	for len(s.watches()) > 0 {
		s.stopWatch(0)
	}
	s.endStateUse()
	s.endListWaits(true)
	s.extra = nil
	s.shard.remove(s)
	s.m.opts.Metrics.Closed(string(reason))
	if bound {
		s.m.clients.remove(s)
		s.m.binder.unbindLater(binding{s.client, s.generation, s.inbox.unsavedAck()})
	}
}

// queueCallFailed handles a failed store call about the client's queue. ErrStale means that the
// client is connected elsewhere, ErrForgotten that the store has lost the client's record.
func (s *Session) queueCallFailed(err error) {
	switch {
	case errors.Is(err, queue.ErrStale):
		s.close(wire.CloseSuperseded, "", 0)
		return
	case errors.Is(err, queue.ErrForgotten):
		s.mustRenew = true // the next tick renews the binding, and later ticks repeat the call
	}
	s.shard.checkNextTick(s)
	s.m.opts.Logger.Warn().Err(err).Msg("client queue: the next tick tries again")
}
