package session

import (
	"slices"

	"switchboard/internal/wire"
)

// maxWaiting is how many messages of a client wait for the store's answer to an earlier
// one, or for its socket to take what it was sent.
const maxWaiting = 64

// maxWaitingBytes bounds them together. One message may always wait.
const maxWaitingBytes = 128 << 10

// line is the messages of a client that wait for their turn.
type line struct {
	list  []waiting
	bytes int // of all of them, as they came
}

// waiting is one of them.
type waiting struct {
	req  wire.Request
	size int
}

// waiting returns how many messages wait for their turn.
func (s *Session) waiting() int {
	if s.extra == nil || s.extra.waiting == nil {
		return 0
	}
	return len(s.extra.waiting.list)
}

// wait puts a message at the end of those that wait for their turn.
func (s *Session) wait(req wire.Request, size int) {
	e := s.need()
	if e.waiting == nil {
		e.waiting = new(line)
	}
	l := e.waiting
	if req.Type == wire.TypePing { // one answer is owed: they must not pile up for a client that does not read
		l.dropPings()
	}
	if n := len(l.list); n == maxWaiting || n > 0 && l.bytes+size > maxWaitingBytes {
		s.close(wire.CloseOverloaded, "too much was sent without waiting for an answer", 1000)
		return
	}
	if s.state == connecting && !slices.ContainsFunc(l.list, func(w waiting) bool { return w.req.Type != wire.TypeAck }) {
		s.wish(req)
	}
	l.list = append(l.list, waiting{req, size})
	l.bytes += size
}

func (l *line) dropPings() {
	l.list = slices.DeleteFunc(l.list, func(w waiting) bool {
		ping := w.req.Type == wire.TypePing
		if ping {
			l.bytes -= w.size
		}
		return ping
	})
}

// take removes the first message, which there must be.
func (l *line) take() wire.Request {
	w := l.list[0]
	l.list, l.bytes = l.list[1:], l.bytes-w.size
	return w.req
}

// next takes up what waited.
func (s *Session) next() {
	for s.waiting() > 0 && !s.busy && s.state != closed && !s.conn.Backlogged() {
		req := s.extra.waiting.take()
		if s.waiting() == 0 {
			s.extra.waiting = nil
			s.spare()
		}
		s.start(req)
	}
}
