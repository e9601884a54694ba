package session

import (
	"time"

	"switchboard/broker/limit"
	"switchboard/internal/wire"
)

// pace is what a connection has used of its rates. Only who sends more than a message in a second has one, and not for
// long: so that an idle connection does without.
type pace struct {
	messages, bytes limit.Bucket
	refused         int // messages in a row; a control frame that passes takes back one

	requests limit.Bucket
	channels limit.Bucket // brought into being
}

// used is s.extra.pace, to be changed.
func (s *Session) used() *pace {
	e := s.need()
	if e.pace == nil {
		e.pace = new(pace)
	}
	return e.pace
}

// full says that the buckets are as good as new ones.
func (p *pace) full(now time.Duration) bool {
	return p.messages.Full(now) && p.bytes.Full(now) && p.requests.Full(now) && p.channels.Full(now)
}

// since is the clock of all buckets.
func (m *Manager) since() time.Duration { return time.Since(m.began) }

// heardNow says whether the client was heard in this second already.
func (s *Session) heardNow() bool { return s.heard == s.m.now.Load() }

// paced takes a message of size bytes of what the connection may send. When it is false the client
// was told. A client that sends on regardless is closed. It comes before Heard, for the same
// message.
func (s *Session) paced(req wire.Request, size int) bool {
	m := s.m
	if m.messages.None() && m.bytes.None() || s.state == fresh { // which takes one message, or closes
		return true
	}
	if (s.extra == nil || s.extra.pace == nil) && s.within(req, size) {
		return true
	}
	p, now := s.used(), m.since()
	if !s.owed(req) {
		if wait := p.messages.Take(m.messages, weight(req), now); wait > 0 {
			s.tooMuch(p, req.Ref, "message_rate", m.opts.Limits.MessageRate, "messages", wait)
			return false
		}
	}
	if wait := p.take(m, size, now); wait > 0 {
		s.tooMuch(p, req.Ref, "byte_rate", m.opts.Limits.ByteRate, "bytes", wait)
		return false
	}
	p.refused = 0
	return true
}

// take takes size bytes, or says how long it is until there are any.
func (p *pace) take(m *Manager, size int, now time.Duration) (wait time.Duration) {
	if size == 0 {
		return 0
	}
	return p.bytes.Take(m.bytes, size, now)
}

// pacedControl takes frames that carry no message, size bytes of payload together. No error answers
// them: a client that goes on sending too many is closed. It comes before Heard, for the same
// frames.
func (s *Session) pacedControl(frames, size int) bool {
	m := s.m
	if m.messages.None() && m.bytes.None() {
		return true
	}
	if (s.extra == nil || s.extra.pace == nil) && s.state != fresh && frames == 1 && s.within(wire.Request{}, size) {
		return true
	}
	p, now := s.used(), m.since()
	wait := p.messages.Take(m.messages, frames, now)
	if wait == 0 {
		wait = p.take(m, size, now)
	}
	if wait == 0 {
		p.refused = max(0, p.refused-1)
		return true
	}
	m.opts.Metrics.Refused("control_rate")
	if p.refused++; p.refused > maxWaiting {
		s.close(wire.CloseOverloaded, "it sends more control frames than it may, and goes on", max(1000, wait.Milliseconds()))
	}
	return false
}

// within says that a message needs no pace yet: it is the only one in this second and has not more
// bytes than one may send in it, or it is the subscription that comes with connect.
func (s *Session) within(req wire.Request, size int) bool {
	if s.m.opts.Limits.ByteRate > 0 && size > s.m.opts.Limits.ByteRate {
		return false
	}
	return !s.heardNow() && weight(req) == 1 || s.state == connecting && req.Type == wire.TypeSubscribe && s.waiting() == 0
}

// owed says that a message answers what the broker sent, which the client must be able to do
// however much that was. The same answer once more is a message like any other.
func (s *Session) owed(req wire.Request) bool {
	switch req.Type {
	case wire.TypePong:
		return s.pinged
	case wire.TypeAck:
		return s.state == open && req.ID > s.inbox.ackTo && req.ID <= s.inbox.sent
	}
	return false
}

// tooMuch refuses a message.
func (s *Session) tooMuch(p *pace, ref wire.Ref, what string, rate int, unit string, wait time.Duration) {
	s.m.opts.Metrics.Refused(what)
	ms := max(1, wait.Milliseconds())
	if p.refused++; p.refused > maxWaiting {
		s.close(wire.CloseOverloaded, "it sends more than it may, and goes on", max(1000, ms))
		return
	}
	s.reject(ref, wire.Errorf(wire.RateLimited, "more than %d %s a second; try again in %d ms", rate, unit, ms))
}

// calm forgets what was used by who has all of it again.
func (s *Session) calm() {
	e := s.extra
	if e == nil || e.pace == nil {
		return
	}
	if e.pace.full(s.m.since()) {
		e.pace = nil
		s.spare()
	}
}
