package client

import (
	"errors"
	"fmt"
	"time"

	"switchboard/internal/wire"
)

// Error is the broker's refusal of one message. Find it with [errors.As]. Its method Retryable
// reports whether the same message may succeed later, and After is the least delay.
type Error = wire.Error

// ErrorCode is the reason for an [Error].
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
	Conflict     = wire.Conflict
	Full         = wire.Full
	OutOfRange   = wire.OutOfRange
	Locked       = wire.Locked
	BadCode      = wire.BadCode
	Expired      = wire.Expired
)

// CloseReason is the reason for which the broker ended a connection.
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

// AllChannel is the channel for pushes to all clients. Every client receives it without
// subscribing.
const AllChannel = wire.AllChannel

var (
	// ErrUnknownOutcome is returned if a message was sent and its answer did not arrive. The broker
	// may have accepted it.
	ErrUnknownOutcome = errors.New("the outcome is unknown")

	// ErrNotReplicated is returned by a publish with Durable that is stored, if no replica confirmed
	// it in time. The error also wraps an [Error] with the code Unavailable.
	ErrNotReplicated = errors.New("not replicated")

	// ErrStopped is returned by calls without an answer when Run ends, and by later calls.
	ErrStopped = errors.New("the client has stopped")

	// ErrUnsubscribed is returned by a Subscribe if Unsubscribe is called before its answer.
	ErrUnsubscribed = errors.New("unsubscribed meanwhile")

	errReplaced       = errors.New("replaced by a later Subscribe")
	errConnectionLost = fmt.Errorf("%w: the connection was lost", ErrUnknownOutcome)
	errIdleTimeout    = errors.New("nothing arrived for too long")
	errMessageTooLong = fmt.Errorf("a message is longer than %d bytes", maxMessage)
)

// ClosedError is returned when the broker ends the connection.
type ClosedError struct {
	Reason    CloseReason
	Message   string        // for people; "" if the broker gave none
	Reconnect bool          // whether the client should reconnect
	After     time.Duration // the least time before the reconnect; 0 means that the client chooses
}

func (e *ClosedError) Error() string {
	text := "closed by the broker: " + string(e.Reason)
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// maxRetryDelay bounds ClosedError.After, so that a wrong number cannot stop a client.
const maxRetryDelay = 10 * time.Minute

// closedBy returns the ClosedError for a closing message.
func closedBy(ev wire.Event) *ClosedError {
	reason := wire.CloseReason(ev.Code)
	reconnect := reason.Reconnect() || reason.Status() == unknownStatus
	if ev.Reconnect != nil {
		reconnect = *ev.Reconnect
	}
	after := min(max(ev.AfterMS, 0), maxRetryDelay.Milliseconds())
	return &ClosedError{
		Reason: reason, Message: ev.Message, Reconnect: reconnect, After: time.Duration(after) * time.Millisecond,
	}
}

// unknownStatus is the Status of an unknown reason, of a later version of the protocol. The client
// treats it like a lost connection.
const unknownStatus = 1000

// connectError returns the error of a connection whose `connect` was refused: a final ClosedError
// if another attempt would fail too, else err.
func connectError(err *Error) error {
	switch err.Code {
	case wire.Unauthorized, wire.Forbidden:
		return &ClosedError{Reason: wire.CloseUnauthorized, Message: err.Message}
	case wire.BadRequest, wire.NotFound, wire.TooLarge:
		return &ClosedError{Reason: wire.CloseBadRequest, Message: err.Message}
	}
	return err
}
