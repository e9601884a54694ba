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
	refused         int // messages in a row
}

// since is the clock of all buckets.
func (m *Manager) since() time.Duration { return time.Since(m.began) }

// heardNow says whether the client was heard in this second already.
func (s *Session) heardNow() bool { return s.heard == s.m.now.Load() }

// paced takes a message of size bytes of what the connection may send. When it is false the client was told, and who sends
// on regardless is closed. often is heardNow, before the message came.
func (s *Session) paced(req wire.Request, size int, often bool) bool {
	m := s.m
	if m.messages.None() && m.bytes.None() || s.state == fresh { // which takes one message, or closes
		return true
	}
	if s.extra == nil || s.extra.pace == nil {
		if s.within(req, size, often) {
			return true
		}
		s.need().pace = new(pace)
	}
	p, now := s.extra.pace, m.since()
	if !s.owed(req) {
		if wait := p.messages.Take(m.messages, 1, now); wait > 0 {
			s.tooMuch(p, req.Ref, "message_rate", m.opts.MessageRate, "messages", wait)
			return false
		}
	}
	if wait := p.bytes.Take(m.bytes, size, now); wait > 0 {
		s.tooMuch(p, req.Ref, "byte_rate", m.opts.ByteRate, "bytes", wait)
		return false
	}
	p.refused = 0
	return true
}

// within says that a message of who has no pace needs none: one in a second, of not more bytes than one may send in it; or the
// subscription that comes with connect.
func (s *Session) within(req wire.Request, size int, often bool) bool {
	if s.m.opts.ByteRate > 0 && size > s.m.opts.ByteRate {
		return false
	}
	return !often || s.state == connecting && req.Type == wire.TypeSubscribe && s.waiting() == 0
}

// owed says that a message is only the answer to what the broker sent: who is sent much must be able to say so.
func (s *Session) owed(req wire.Request) bool {
	return req.Type == wire.TypePong || req.Type == wire.TypeAck && s.state == open && req.ID > 0 && req.ID <= s.inbox.sent
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
	if now := s.m.since(); e.pace.messages.Full(now) && e.pace.bytes.Full(now) {
		e.pace = nil
		s.spare()
	}
}
