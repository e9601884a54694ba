package session

import "switchboard/broker/transport"

// HasRateUse returns whether a session has a rateUse, and HasExtra whether it has any extra state.
func HasRateUse(r transport.Receiver) bool {
	e := r.(*Session).extra
	return e != nil && e.rateUse != nil
}
func HasExtra(r transport.Receiver) bool { return r.(*Session).extra != nil }

// HasStateUse returns whether a session has a stateUse.
func HasStateUse(r transport.Receiver) bool { return r.(*Session).stateUse() != nil }
