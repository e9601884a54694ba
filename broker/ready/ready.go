// Package ready decides whether a server is ready to serve: it holds its lease, everything is
// bound, and a message that it sends to itself arrives.
package ready

import (
	"context"
	"time"

	"switchboard/broker/hub"
	"switchboard/broker/loop"
	"switchboard/broker/member"
	"switchboard/queue"
)

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

// Failure is a failed step with the reason that /readyz reports. The zero value means ready.
type Failure struct {
	Step, Reason string
	Err          error // only for the log, since it may contain addresses; nil for none
}

// Queue holds the method of a queue that the self test calls.
type Queue interface {
	AppendChannel(ctx context.Context, p queue.ChannelPush) (queue.Appended, error)
}

// Options are the parts that a Check looks at. All are required.
type Options struct {
	Member *member.Member
	Hub    *hub.Hub
	Queue  Queue
	Loop   *loop.Loop // of the self test's subscription
	// Draining reports whether the server is shutting down.
	Draining func() bool
	// Tokens returns why tokens cannot be verified, "" if they can.
	Tokens func() string
}

// Check tells whether a server is ready. Its methods may be called by several goroutines.
type Check struct {
	opts Options
	test selfTest
}

// New returns a Check.
func New(o Options) *Check {
	c := &Check{opts: o}
	c.test.init(o)
	return c
}

// Quick returns the first step that keeps the server from serving, without the self test.
func (c *Check) Quick() Failure {
	m := c.opts.Member
	switch {
	case c.opts.Draining():
		return Failure{Step: stepDraining, Reason: "draining"}
	case !m.Joined():
		return Failure{Step: stepJoin, Reason: "the store has not been reached yet"}
	case m.SinceBeat() > m.Lease():
		return Failure{Step: stepLease, Reason: "the lease ended: the store has not been reached for " + m.SinceBeat().Round(time.Second).String()}
	}
	if !m.Bound() {
		return Failure{Step: stepBind, Reason: "the store cannot be reached, or not everything is bound again since"}
	}
	if reason := c.opts.Tokens(); reason != "" {
		return Failure{Step: stepTokenKeys, Reason: reason}
	}
	return Failure{}
}

// Full is Quick with the self test.
func (c *Check) Full() Failure {
	if f := c.Quick(); f.Step != "" {
		return f
	}
	return c.test.check()
}
