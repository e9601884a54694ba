package session

import (
	"switchboard/broker/transport"
	"switchboard/internal/wire"
)

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

// maxWaitingBytes bounds the sum of the sizes of waiting messages. A single message may be larger.
const maxWaitingBytes = 128 << 10

// enqueue appends a message to those that wait. If there are too many, it closes the connection.
func (s *Session) enqueue(req wire.Request, size int) {
	e := s.ensureExtra()
	if e.waiting == nil {
		e.waiting = new(waitingMessages)
	}
	w := e.waiting
	if req.Type == wire.TypePing { // one pong answers all: pings must not pile up for a client that does not read
		w.dropPings()
	}
	// Size 0 means that the request came with the handshake, or in the same unit of the dialect as an
	// earlier request. Such a request is always accepted.
	if n := len(w.list); size > 0 && n > 0 && (n >= s.m.opts.Limits.Waiting || w.bytes+size > maxWaitingBytes) {
		s.close(wire.CloseOverloaded, "too much was sent without waiting for an answer", 1000)
		return
	}
	if s.state == connecting && w.onlyAcks() {
		s.shard.noteEarlySubscribe(s, req)
	}
	w.list = append(w.list, waitingMessage{req, size})
	w.bytes += size
}

// handleWaiting handles waiting messages until one needs the store or the socket is backed up. Then
// it begins the subscriptions of the backend that are due.
func (s *Session) handleWaiting() {
	for s.waiting() > 0 && !s.busy && s.state != closed && !s.conn.Backlogged() {
		req := s.extra.waiting.pop()
		if s.waiting() == 0 {
			s.extra.waiting = nil
			s.dropEmptyExtra()
		}
		s.dispatch(req)
	}
	s.subscribeDue()
}
