package session

import (
	"time"

	"switchboard/internal/meter"
	"switchboard/internal/wire"
)

// maxRefused is the most messages in a row that exceed a rate before the connection is closed.
const maxRefused = 64

// takeRates takes a message of size bytes from the message and byte rates. If a rate is exceeded,
// it refuses the message and returns false. It closes the connection of a client that continues. It
// must be called before noteHeard for the same message.
func (s *Session) takeRates(req wire.Request, size int) bool {
	r, limits := &s.m.rates, &s.m.opts.Limits
	if r.noTrafficLimit() || s.state == fresh { // a fresh session takes one message, or closes
		return true
	}
	if s.needsNoRateUse(req, size) {
		return true
	}
	u, now := s.ensureRateUse(), r.now()
	if !s.isExpectedAnswer(req) {
		if wait := u.messages.Take(r.messages, weight(req), now); wait > 0 {
			s.refuseRate(u, req.Ref, "message_rate", limits.MessageRate, "messages", wait)
			return false
		}
	}
	if wait := u.takeBytes(r.bytes, size, now); wait > 0 {
		s.refuseRate(u, req.Ref, "byte_rate", limits.ByteRate, "bytes", wait)
		return false
	}
	u.refused = 0
	return true
}

// takeControlRates takes control frames with size bytes of payload from the message and byte rates.
// If a rate is exceeded, it returns false but sends no error. It closes the connection of a client
// that continues. It must be called before noteHeard for the same frames.
func (s *Session) takeControlRates(frames, size int) bool {
	r := &s.m.rates
	if r.noTrafficLimit() {
		return true
	}
	if s.state != fresh && frames == 1 && s.needsNoRateUse(wire.Request{}, size) {
		return true
	}
	u, now := s.ensureRateUse(), r.now()
	wait := u.messages.Take(r.messages, frames, now)
	if wait == 0 {
		wait = u.takeBytes(r.bytes, size, now)
	}
	if wait == 0 {
		u.refused = max(0, u.refused-1)
		return true
	}
	s.m.opts.Metrics.Refused("control_rate")
	if u.refused++; u.refused > maxRefused {
		s.close(wire.CloseOverloaded, "it sends more control frames than it may, and goes on", max(1000, wait.Milliseconds()))
	}
	return false
}

// needsNoRateUse returns whether the session has no rateUse and can accept the message without one,
// because the message is certainly within the rates. The message must not be larger than one second
// allows. It must also be the first in this second, or the subscribe that follows connect.
func (s *Session) needsNoRateUse(req wire.Request, size int) bool {
	oneSecond := s.m.opts.Limits.ByteRate
	if s.rateUse() != nil || oneSecond > 0 && size > oneSecond {
		return false
	}
	heardNow := s.lastHeard == s.m.currentTick.Load()
	return !heardNow && weight(req) == 1 || s.state == connecting && req.Type == wire.TypeSubscribe && s.waiting() == 0
}

// isExpectedAnswer returns whether a message answers something that the server sent: the pong to a
// ping, or the first acknowledgement of a message. The message rate does not limit these, but the
// byte rate does.
func (s *Session) isExpectedAnswer(req wire.Request) bool {
	switch req.Type {
	case wire.TypePong:
		return s.pinged
	case wire.TypeAck:
		return s.state == open && s.inbox.expectsAck(req.ID)
	}
	return false
}

// refuseRate refuses a message that exceeds a rate. It closes the connection if too many messages
// in a row were refused.
func (s *Session) refuseRate(u *rateUse, ref wire.Ref, metric string, rate int, unit string, wait time.Duration) {
	s.m.opts.Metrics.Refused(metric)
	ms := max(1, wait.Milliseconds())
	if u.refused++; u.refused > maxRefused {
		s.close(wire.CloseOverloaded, "it sends more than it may, and goes on", max(1000, ms))
		return
	}
	s.refuseUnqueued(ref, rateLimited(wait, "more than %d %s a second (limits.%s)", rate, unit, metric))
}

// chargeBytes takes the size of an answer, in bytes, from the byte rate of the connection.
func (s *Session) chargeBytes(size int) {
	if size > 0 && s.state != closed && !s.m.rates.bytes.None() {
		s.ensureRateUse().bytes.Take(s.m.rates.bytes, size, s.m.rates.now())
	}
}

// chargeMessages takes n messages from the message rate of the connection.
func (s *Session) chargeMessages(n int) {
	if n > 0 && s.state != closed && !s.m.rates.messages.None() {
		s.ensureRateUse().messages.Take(s.m.rates.messages, n, s.m.rates.now())
	}
}

// chargeRead charges the connection for n bytes that a message of the client made the store read.
// Each KiB counts as a message, except those for which the message has paid with its weight. It
// takes nothing for what one second allows if the session has no rateUse, as needsNoRateUse does:
// an idle subscriber would otherwise keep a rateUse until it is checked next, which is 128 bytes
// more for each connection.
func (s *Session) chargeRead(n, paid int) {
	if n = kib(n) - paid; s.rateUse() != nil || n > s.m.opts.Limits.MessageRate {
		s.chargeMessages(n)
	}
}

// maxDebt is the debt of a rate above which the store is not read for subscriptions.
const maxDebt = time.Second

// smallDelivery is how many messages a delivery may count as without a rateUse.
const smallDelivery = 4

// MayRead implements hub.Subscriber.
func (s *Session) MayRead() bool {
	if u := s.rateUse(); u != nil {
		bucket := u.messages // a copy
		if bucket.Take(s.m.rates.messages, 1, s.m.rates.now()) >= maxDebt {
			return false
		}
	}
	return s.readWait() < maxDebt
}

// Charge implements hub.Subscriber.
func (s *Session) Charge(written, unused int) {
	charged := meter.Delivered(written) + unused
	s.m.senders.TakeRead(s.sender(), charged)
	if n := kib(charged); s.rateUse() != nil || n > smallDelivery {
		s.chargeMessages(n)
	}
}

// kib returns a size in KiB, rounded up.
func kib(bytes int) int { return (bytes + 1<<10 - 1) >> 10 }
