package client

import (
	"errors"
	"fmt"
	"time"

	"switchboard/internal/wire"
)

// Error is a refusal by the broker; find it with [errors.As].
type Error = wire.Error

// ErrorCode says why one message was refused.
type ErrorCode = wire.ErrorCode

// The error codes of the protocol.
const (
	BadRequest   = wire.BadRequest
	Unauthorized = wire.Unauthorized
	Forbidden    = wire.Forbidden
	NotFound     = wire.NotFound
	TooLarge     = wire.TooLarge
	RateLimited  = wire.RateLimited
	Unavailable  = wire.Unavailable
	Timeout      = wire.Timeout
)

// CloseReason is why the broker ended a connection.
type CloseReason = wire.CloseReason

// The close reasons of the protocol.
const (
	CloseDraining     = wire.CloseDraining
	CloseSuperseded   = wire.CloseSuperseded
	CloseUnauthorized = wire.CloseUnauthorized
	CloseExpired      = wire.CloseExpired
	CloseDisconnected = wire.CloseDisconnected
	CloseBadRequest   = wire.CloseBadRequest
	CloseSlow         = wire.CloseSlow
	CloseIdle         = wire.CloseIdle
	CloseOverloaded   = wire.CloseOverloaded
)

// AllChannel is the channel of what was pushed to everyone. Every client follows it
// without subscribing.
const AllChannel = wire.AllChannel

var (
	// ErrUnknownOutcome is returned when a message was sent and the answer did not come:
	// the broker may or may not have accepted it.
	ErrUnknownOutcome = errors.New("the outcome is unknown")

	// ErrStopped is returned by calls that Run, having ended, can no longer answer.
	ErrStopped = errors.New("the client has stopped")

	// ErrUnsubscribed is returned by a Subscribe that an Unsubscribe overtook.
	ErrUnsubscribed = errors.New("unsubscribed meanwhile")

	errReplaced = errors.New("replaced by a later Subscribe with another position")
	errSilent   = errors.New("nothing arrived for too long")
	errLong     = fmt.Errorf("a message is longer than %d bytes", maxMessage)
)

// ClosedError says that the broker ended the connection, and why.
type ClosedError struct {
	Reason    CloseReason
	Reconnect bool          // whether the client is to come back
	After     time.Duration // the least time before that, 0 where the broker leaves it to the client
}

func (e *ClosedError) Error() string { return "closed by the broker: " + string(e.Reason) }

// maxAfter bounds what a broker may ask for, so that no number on the wire can send a
// client to sleep for good.
const maxAfter = 10 * time.Minute

// closedBy is the ClosedError of a closing message.
func closedBy(ev wire.Event) *ClosedError {
	reason := wire.CloseReason(ev.Code)
	reconnect := reason.Reconnect() || reason.Status() == unknownStatus
	if ev.Reconnect != nil {
		reconnect = *ev.Reconnect
	}
	after := min(max(ev.AfterMS, 0), maxAfter.Milliseconds())
	return &ClosedError{Reason: reason, Reconnect: reconnect, After: time.Duration(after) * time.Millisecond}
}

// unknownStatus is what Status gives for a reason of a later version of the protocol:
// such an end is treated like a lost connection.
const unknownStatus = 1000

// refusal turns the error answer to `connect` into what it means for the loop: an error
// that another attempt cannot mend becomes a ClosedError.
func refusal(err *Error) error {
	switch err.Code {
	case wire.Unauthorized, wire.Forbidden:
		return &ClosedError{Reason: wire.CloseUnauthorized}
	case wire.BadRequest, wire.NotFound, wire.TooLarge:
		return &ClosedError{Reason: wire.CloseBadRequest}
	}
	return err
}

// passing says whether the same message may be accepted a little later.
func passing(err *Error) bool {
	switch err.Code {
	case wire.Unavailable, wire.RateLimited, wire.Timeout:
		return true
	}
	return false
}
