package session

import "switchboard/broker/transport"

// Paced says whether what a client sends is counted, and Rests whether its session has nothing but what all have.
func Paced(r transport.Receiver) bool { e := r.(*Session).extra; return e != nil && e.pace != nil }
func Rests(r transport.Receiver) bool { return r.(*Session).extra == nil }
