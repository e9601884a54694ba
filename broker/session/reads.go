package session

import (
	"context"
	"net/netip"
	"time"

	"switchboard/broker/limit"
	"switchboard/internal/meter"
	"switchboard/internal/wire"
)

// What a message makes the store read is charged twice: to the rates of the connection, which count
// also what the broker has in memory (chargeRead), and to the sender, so that more connections do
// not read more. The sender is charged where the read is done, also if the connection has ended
// meanwhile. It is asked before the next message that may read.

// readLimit names the limit of readError.
const readLimit = "user_read"

// readError returns the refusal of a message or a call for which the store would be read. wait is
// the time until it may be read.
func readError(bytes int, wait time.Duration) error {
	return rateLimited(wait, "more than %d bytes a second read for one user or address (limits.user_read)", bytes)
}

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
