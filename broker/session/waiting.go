package session

import (
	"slices"

	"switchboard/internal/wire"
)

// maxWaitingBytes bounds the sum of the sizes of waiting messages. A single message may be larger.
const maxWaitingBytes = 128 << 10

// waitingMessages are the messages of a client that are handled later, in their order. Only the
// session's loop uses it.
type waitingMessages struct {
	list  []waitingMessage
	bytes int // the sum of the sizes
}

type waitingMessage struct {
	req  wire.Request
	size int // as received
}

// waiting returns the number of waiting messages.
func (s *Session) waiting() int {
	if s.extra == nil || s.extra.waiting == nil {
		return 0
	}
	return len(s.extra.waiting.list)
}

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

// onlyAcks returns whether nothing but acknowledgements waits.
func (w *waitingMessages) onlyAcks() bool {
	return !slices.ContainsFunc(w.list, func(m waitingMessage) bool { return m.req.Type != wire.TypeAck })
}

func (w *waitingMessages) dropPings() {
	w.list = slices.DeleteFunc(w.list, func(m waitingMessage) bool {
		ping := m.req.Type == wire.TypePing
		if ping {
			w.bytes -= m.size
		}
		return ping
	})
}

// pop removes the first message and returns it. There must be one.
func (w *waitingMessages) pop() wire.Request {
	m := w.list[0]
	w.list, w.bytes = w.list[1:], w.bytes-m.size
	return m.req
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
