package wire

import (
	"fmt"
	"time"
)

// ErrorCode says why one message or one HTTP call was refused.
type ErrorCode string

// The error codes. The metric label, the JSON and this constant are the same word.
const (
	BadRequest   ErrorCode = "bad_request"  // malformed: not this protocol, or not these fields
	Unauthorized ErrorCode = "unauthorized" // no or bad token or key
	Forbidden    ErrorCode = "forbidden"    // known, and not allowed
	NotFound     ErrorCode = "not_found"    // no such user, client, channel or path
	TooLarge     ErrorCode = "too_large"    // over a limit of size
	RateLimited  ErrorCode = "rate_limited" // over a limit of number or rate; later it may pass
	Unavailable  ErrorCode = "unavailable"  // the store cannot be reached: nothing was acknowledged
	Timeout      ErrorCode = "timeout"      // no answer in time: it may have been done
)

// Error is a refusal as client or backend sees it.
type Error struct {
	Code    ErrorCode
	Message string
	After   time.Duration // with RateLimited: when it may pass; 0 where that is not known
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Errorf makes an Error.
func Errorf(code ErrorCode, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// CloseReason is why the broker ends a connection: the `code` of a closing message and
// the label of the metric.
type CloseReason string

// The close reasons, with what each tells the client.
const (
	CloseDraining     CloseReason = "draining"     // the server is going down: come back after after_ms
	CloseSuperseded   CloseReason = "superseded"   // the same client connected elsewhere: do not come back
	CloseUnauthorized CloseReason = "unauthorized" // no or bad token: do not come back with it
	CloseExpired      CloseReason = "expired"      // the token ran out: come back with a new one
	CloseDisconnected CloseReason = "disconnected" // the backend asked for it: do not come back
	CloseBadRequest   CloseReason = "bad_request"  // not this protocol: do not come back
	CloseSlow         CloseReason = "slow"         // unread for longer than the limit: come back
	CloseIdle         CloseReason = "idle"         // no pong: come back
	CloseOverloaded   CloseReason = "overloaded"   // connection or rate limit: come back after after_ms
	CloseGone         CloseReason = "gone"         // the peer went first: nothing is sent
)

// Status is the WebSocket close code (RFC 6455 §7.4.2, private range).
func (r CloseReason) Status() int {
	switch r {
	case CloseDraining:
		return 4001
	case CloseSuperseded:
		return 4002
	case CloseUnauthorized:
		return 4003
	case CloseExpired:
		return 4004
	case CloseDisconnected:
		return 4005
	case CloseBadRequest:
		return 4006
	case CloseSlow:
		return 4007
	case CloseIdle:
		return 4008
	case CloseOverloaded:
		return 4009
	}
	return 1000
}

// Reconnect says whether the client should come back.
func (r CloseReason) Reconnect() bool {
	switch r {
	case CloseDraining, CloseExpired, CloseSlow, CloseIdle, CloseOverloaded:
		return true
	}
	return false
}

// CloseReasonOf is the reason behind a WebSocket close code; ok is false for a code
// that is not ours.
func CloseReasonOf(status int) (reason CloseReason, ok bool) {
	for _, r := range []CloseReason{
		CloseDraining, CloseSuperseded, CloseUnauthorized, CloseExpired, CloseDisconnected,
		CloseBadRequest, CloseSlow, CloseIdle, CloseOverloaded,
	} {
		if r.Status() == status {
			return r, true
		}
	}
	return "", false
}
