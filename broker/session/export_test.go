package session

import (
	"switchboard/broker/loop"
	"switchboard/broker/transport"
)

// HasRateUse returns whether a session has a rateUse, and HasExtra whether it has any extra state.
func HasRateUse(r transport.Receiver) bool {
	e := r.(*Session).extra
	return e != nil && e.rateUse != nil
}
func HasExtra(r transport.Receiver) bool { return r.(*Session).extra != nil }

// SenderCount returns the number of senders that have not refilled all their rates.
func SenderCount(m *Manager) int { return m.senders.Len() }

// HasStateUse returns whether a session has a stateUse.
func HasStateUse(r transport.Receiver) bool { return r.(*Session).stateUse() != nil }

// StatePrefix returns the prefix with which a session is subscribed to the state of a channel. ok
// is false if it is not.
func StatePrefix(l *loop.Loop, r transport.Receiver, channel string) (prefix string, ok bool) {
	done := make(chan struct{})
	l.Post(func() {
		defer close(done)
		if sub := r.(*Session).stateSubscription(channel); sub != nil {
			prefix, ok = sub.Filter().Prefix, true
		}
	})
	<-done
	return prefix, ok
}
