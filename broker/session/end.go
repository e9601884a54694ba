package session

import (
	"errors"

	"switchboard/broker/binding"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// noteRefused notes for the calls that wait that the backend could not subscribe the client.
func (s *Session) noteRefused(channel string, why *wire.Error) {
	if r := s.listRead(); r != nil {
		for _, w := range r.waiting {
			w.refused = append(w.refused, RefusedSub{s.client, channel, why.Code, why.Message})
		}
	}
}

// endListWaits answers the calls of the backend that wait for the session, if all subscriptions
// have begun, or if the session has ended.
func (s *Session) endListWaits(gone bool) {
	r := s.listRead()
	if r == nil || !gone && (r.running || r.failed) {
		return
	}
	if b := s.backendSubs(); !gone && b != nil && len(b.due)+len(b.retry) > 0 {
		return
	}
	for _, w := range r.waiting {
		w.done <- listApplied{w.refused, gone}
	}
	s.extra.profile.reading = nil
}

// The reasons with which connections are closed as expired.
const (
	tokenExpired = "the token ran out"
	tokenRevoked = "the token was revoked"
)

// noteHeard notes that the client is alive. Before connect it does nothing, because only connect
// may prevent the connect timeout.
func (s *Session) noteHeard() {
	if s.state == fresh {
		return
	}
	s.lastHeard = s.m.currentTick.Load()
	s.pinged = false
}

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
		s.m.binder.UnbindLater(binding.Binding{Client: s.client, Generation: s.generation, UnsavedAck: s.inbox.unsavedAck()})
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

// endStateUse drops the unwritten pages and ends all ownerships, because the session ends.
func (s *Session) endStateUse() {
	u := s.stateUse()
	if u == nil {
		return
	}
	owned := u.owned
	for _, p := range u.pages {
		s.releasePages(p)
	}
	u.owned, u.pages = nil, nil
	s.dropEmptyStateUse()
	for _, o := range owned {
		s.m.owners.sessionEnded(o)
	}
}
