package session

import (
	"context"
	"net/netip"
	"time"

	"switchboard/broker/limit"
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

// What a message makes the store read is charged twice: to the rates of the connection, which count
// also what the broker has in memory (chargeRead), and to the sender, so that more connections do
// not read more. The sender is charged where the read is done, also if the connection has ended
// meanwhile. It is asked before the next message that may read.

// readLimit names the limit of readError.
const readLimit = "user_read"

// mayReadFor reports whether the store may be read for a message now. If not, it refuses the
// message. Messages that only end something, and those that read nothing, are not refused.
func (s *Session) mayReadFor(req *wire.Request) bool {
	if s.state != open || s.m.senders.MayAllRead() {
		return true
	}
	switch req.Type {
	case wire.TypeSubscribe, wire.TypeHistory, wire.TypeState, wire.TypePresence, wire.TypeHere, wire.TypeRequest:
	case wire.TypePublish:
		if req.Change == nil { // a refused change is answered with fields
			return true
		}
	default:
		return true
	}
	wait := s.readWait()
	if wait == 0 || s.inMemory(*req) {
		return true
	}
	s.m.opts.Metrics.Refused(readLimit)
	s.refuse(req.Ref, readError(s.m.opts.Limits.UserRead, wait))
	return false
}

// readWait returns how long it is until the store may be read for the client.
func (s *Session) readWait() time.Duration {
	if s.m.senders.MayAllRead() {
		return 0
	}
	return s.m.senders.ReadWait(s.sender())
}

// inMemory reports whether a subscribe needs nothing from the store. For an early subscribe it was
// read before, and the sender was charged.
func (s *Session) inMemory(req wire.Request) bool {
	if req.Type != wire.TypeSubscribe || req.Presence || selectorOf(req) != nil || s.authorizer(req.Channel) != nil {
		return false
	}
	pos, ok := s.m.opts.Hub.TryAcquire(req.Channel, s.m.opts.Hub.ResumeCursor(req.After))
	if ok {
		s.m.opts.Hub.Release(pos.Channel)
	}
	return ok
}

// BeginRead begins an HTTP call that a client without an API key makes from an address, with its
// port, which is 0 if a proxy names the address. The call reads the store in ctx, and its reads
// are charged to the clients without a user at the address by end, which must be called. The error
// is a *wire.Error, if they have read too much.
func (m *Manager) BeginRead(ctx context.Context, address string) (metered context.Context, end func(), err error) {
	peer, _ := netip.ParseAddrPort(address)
	by := limit.SenderOf("", peer, m.opts.Limits.Proxies)
	if wait := m.senders.ReadWait(by); wait > 0 {
		m.opts.Metrics.Refused(readLimit)
		return ctx, func() {}, readError(m.opts.Limits.UserRead, wait)
	}
	read := new(meter.Meter)
	return meter.With(ctx, read), func() { m.senders.TakeRead(by, read.Read()) }, nil
}

// takeRequest takes one request from the connection's request rate.
func (s *Session) takeRequest() error {
	rate := s.m.rates.requests
	if rate.None() {
		return nil
	}
	wait := s.ensureRateUse().requests.Take(rate, 1, s.m.rates.now())
	if wait == 0 {
		return nil
	}
	s.m.opts.Metrics.Refused("request_rate")
	return rateLimited(wait, "more than %d requests a second (requests.rate)", s.m.opts.Requests.Rate)
}
