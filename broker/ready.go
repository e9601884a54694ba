package broker

import "time"

// The steps to readiness, as /readyz reports them.
const (
	stepDraining  = "draining"   // the server is shutting down
	stepJoin      = "join"       // the store has not been reached since the start
	stepLease     = "lease"      // the store has not been reached for longer than a lease
	stepBind      = "bind"       // the store may have lost bindings, and they are not made again yet
	stepTokenKeys = "token_keys" // the token keys have not been fetched

	// These are the steps of the self test.
	stepSubscribe = "subscribe" // the channel could not be subscribed to
	stepStore     = "store"     // the message could not be stored
	stepOwners    = "owners"    // the store does not list this server as an owner of the channel
	stepDelivery  = "delivery"  // the message was not delivered in time
)

// unready is a failed step with the reason that /readyz reports. The zero value means ready.
type unready struct {
	step, reason string
	err          error // only for the log, since it may contain addresses; nil for none
}

// notReady returns the first step that keeps this server from serving, before the self test.
func (b *Broker) notReady() unready {
	m := b.member
	switch {
	case b.draining.Load():
		return unready{step: stepDraining, reason: "draining"}
	case !m.Joined():
		return unready{step: stepJoin, reason: "the store has not been reached yet"}
	case m.SinceBeat() > m.Lease():
		return unready{step: stepLease, reason: "the lease ended: the store has not been reached for " + m.SinceBeat().Round(time.Second).String()}
	}
	if !m.Bound() {
		return unready{step: stepBind, reason: "the store cannot be reached, or not everything is bound again since"}
	}
	if reason := b.access.tokens.Load().Unready(); reason != "" {
		return unready{step: stepTokenKeys, reason: reason}
	}
	return unready{}
}
