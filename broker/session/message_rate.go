package session

import (
	"time"

	"switchboard/broker/limit"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// rateUse is what a connection has used of its rate limits. A connection gets one when it sends
// more than one message in a second, and loses it when all buckets are full again: so an idle
// connection needs no memory for it. Only the session's loop uses it.
type rateUse struct {
	messages, bytes limit.Bucket
	refused         int // messages refused in a row; each accepted control frame takes back one

	requests limit.Bucket // to backend workers
	channels limit.Bucket // created
}

// rates are the limits to which rateUse applies.
type rates struct {
	messages, bytes limit.Rate
	requests        limit.Rate // to backend workers
	channels        limit.Rate // created
}

func newRates(o Options) (r rates) {
	r.messages, r.bytes = limit.PerSecond(o.Limits.MessageRate), limit.PerSecond(o.Limits.ByteRate)
	r.requests = limit.PerSecond(o.Requests.Rate)
	if n := o.Limits.NewChannels; n > 0 {
		r.channels = limit.New(float64(n)/60, max(n, o.Limits.Channels))
	}
	return r
}

// ensureRateUse returns the session's rateUse. It creates one if there is none.
func (s *Session) ensureRateUse() *rateUse {
	e := s.ensureExtra()
	if e.rateUse == nil {
		e.rateUse = new(rateUse)
	}
	return e.rateUse
}

// full returns whether all buckets are as full as new ones.
func (u *rateUse) full(now time.Duration) bool {
	return u.messages.Full(now) && u.bytes.Full(now) && u.requests.Full(now) && u.channels.Full(now)
}

// bucketClock returns the time since the manager was created, which all buckets use.
func (m *Manager) bucketClock() time.Duration { return time.Since(m.began) }

// heardNow returns whether the client was heard in this second already.
func (s *Session) heardNow() bool { return s.lastHeard == s.m.currentTick.Load() }

// takeRates takes a message of size bytes from the message and byte rates. If a rate is exceeded,
// it refuses the message and returns false; a client that continues is disconnected. It must be
// called before noteHeard for the same message.
func (s *Session) takeRates(req wire.Request, size int) bool {
	m := s.m
	if m.rates.messages.None() && m.rates.bytes.None() || s.state == fresh { // a fresh session takes one message, or closes
		return true
	}
	if (s.extra == nil || s.extra.rateUse == nil) && s.withinOneSecond(req, size) {
		return true
	}
	u, now := s.ensureRateUse(), m.bucketClock()
	if !s.isExpectedAnswer(req) {
		if wait := u.messages.Take(m.rates.messages, weight(req), now); wait > 0 {
			s.refuseRate(u, req.Ref, "message_rate", m.opts.Limits.MessageRate, "messages", wait)
			return false
		}
	}
	if wait := u.takeBytes(m.rates.bytes, size, now); wait > 0 {
		s.refuseRate(u, req.Ref, "byte_rate", m.opts.Limits.ByteRate, "bytes", wait)
		return false
	}
	u.refused = 0
	return true
}

// takeBytes takes size bytes, or returns how long it takes until they are available.
func (u *rateUse) takeBytes(rate limit.Rate, size int, now time.Duration) (wait time.Duration) {
	if size == 0 {
		return 0
	}
	return u.bytes.Take(rate, size, now)
}

// takeControlRates takes control frames with size bytes of payload from the message and byte rates.
// If a rate is exceeded, it returns false but sends no error; a client that continues is
// disconnected. It must be called before noteHeard for the same frames.
func (s *Session) takeControlRates(frames, size int) bool {
	m := s.m
	if m.rates.messages.None() && m.rates.bytes.None() {
		return true
	}
	if (s.extra == nil || s.extra.rateUse == nil) && s.state != fresh && frames == 1 && s.withinOneSecond(wire.Request{}, size) {
		return true
	}
	u, now := s.ensureRateUse(), m.bucketClock()
	wait := u.messages.Take(m.rates.messages, frames, now)
	if wait == 0 {
		wait = u.takeBytes(m.rates.bytes, size, now)
	}
	if wait == 0 {
		u.refused = max(0, u.refused-1)
		return true
	}
	m.opts.Metrics.Refused("control_rate")
	if u.refused++; u.refused > maxWaiting {
		s.close(wire.CloseOverloaded, "it sends more control frames than it may, and goes on", max(1000, wait.Milliseconds()))
	}
	return false
}

// withinOneSecond returns whether a message needs no rateUse: it is the first in this second and
// not larger than one second allows, or it is the subscribe that follows connect.
func (s *Session) withinOneSecond(req wire.Request, size int) bool {
	if s.m.opts.Limits.ByteRate > 0 && size > s.m.opts.Limits.ByteRate {
		return false
	}
	return !s.heardNow() && weight(req) == 1 || s.state == connecting && req.Type == wire.TypeSubscribe && s.waiting() == 0
}

// isExpectedAnswer returns whether a message answers something that the server sent: the pong to a
// ping, or the first acknowledgement of a message. The message rate does not limit these, but the
// byte rate does.
func (s *Session) isExpectedAnswer(req wire.Request) bool {
	switch req.Type {
	case wire.TypePong:
		return s.pinged
	case wire.TypeAck:
		return s.state == open && req.ID > s.inbox.ackTo && req.ID <= s.inbox.sent
	}
	return false
}

// refuseRate refuses a message that exceeds a rate. It closes the connection if too many messages
// in a row were refused.
func (s *Session) refuseRate(u *rateUse, ref wire.Ref, what string, rate int, unit string, wait time.Duration) {
	s.m.opts.Metrics.Refused(what)
	ms := max(1, wait.Milliseconds())
	if u.refused++; u.refused > maxWaiting {
		s.close(wire.CloseOverloaded, "it sends more than it may, and goes on", max(1000, ms))
		return
	}
	s.refuseUnqueued(ref, wire.Errorf(wire.RateLimited, "more than %d %s a second; try again in %d ms", rate, unit, ms))
}

// dropFullBuckets drops the session's rateUse if all its buckets are full again.
func (s *Session) dropFullBuckets() {
	e := s.extra
	if e == nil || e.rateUse == nil {
		return
	}
	if e.rateUse.full(s.m.bucketClock()) {
		e.rateUse = nil
		s.dropEmptyExtra()
	}
}

// heavyWeight is the weight of a message that has the store read many records.
const heavyWeight = 10

// weight returns how many messages a message counts as.
func weight(req wire.Request) int {
	if req.Type == wire.TypeHistory || req.Type == wire.TypePresence {
		return heavyWeight
	}
	return 1
}

// chargeHistory takes the size of a history answer from the byte rate of the connection.
func (s *Session) chargeHistory(messages []wire.Stored) {
	n := 0
	for _, m := range messages {
		n += len(m.Data)
	}
	s.chargeBytes(n)
}

// chargeMembers takes the size of a presence page from the byte rate of the connection.
func (s *Session) chargeMembers(members []registry.Member) {
	n := 0
	for _, m := range members {
		n += len(m.Client) + len(m.User) + len(m.Info)
	}
	s.chargeBytes(n)
}

func (s *Session) chargeBytes(n int) {
	if n > 0 && s.state != closed && !s.m.rates.bytes.None() {
		s.ensureRateUse().bytes.Take(s.m.rates.bytes, n, s.m.bucketClock())
	}
}
