package wire

import (
	"cmp"
	"fmt"
	"net/http"
	"time"
)

// ErrorCode is why one request of a client or one HTTP call was refused.
type ErrorCode string

// The error codes. Metric labels and JSON use the same words.
const (
	BadRequest   ErrorCode = "bad_request"  // not this protocol, or a field is missing or invalid
	Unauthorized ErrorCode = "unauthorized" // no token or key, or an invalid one
	Forbidden    ErrorCode = "forbidden"    // the token or key does not allow it
	NotFound     ErrorCode = "not_found"    // no such user, client, channel or path
	TooLarge     ErrorCode = "too_large"    // over a size limit
	RateLimited  ErrorCode = "rate_limited" // over a limit of number or rate; it may succeed later
	Unavailable  ErrorCode = "unavailable"  // the store or the backend cannot be reached; it may succeed later
	Timeout      ErrorCode = "timeout"      // no answer in time; the call may have been executed
	Conflict     ErrorCode = "conflict"     // a field does not have the expected id, or another user holds it
	Full         ErrorCode = "full"         // over a limit of the number of fields
	OutOfRange   ErrorCode = "limit"        // a number would leave its bounds
	Locked       ErrorCode = "locked"       // the owner has locked it; a password or an invitation may open it
	BadCode      ErrorCode = "bad_code"     // the password, invitation or code is wrong
	Expired      ErrorCode = "expired"      // it existed and has ended
)

// Status returns the HTTP status of an answer with this error (RFC 9110 §15).
func (c ErrorCode) Status() int {
	switch c {
	case BadRequest:
		return http.StatusBadRequest
	case Unauthorized:
		return http.StatusUnauthorized
	case Forbidden, BadCode:
		return http.StatusForbidden
	case NotFound:
		return http.StatusNotFound
	case TooLarge:
		return http.StatusRequestEntityTooLarge
	case RateLimited:
		return http.StatusTooManyRequests
	case Timeout:
		return http.StatusGatewayTimeout
	case Conflict, Full, OutOfRange:
		return http.StatusConflict
	case Locked:
		return http.StatusLocked
	case Expired:
		return http.StatusGone
	}
	return http.StatusServiceUnavailable
}

// Retryable reports whether the same request may succeed after a delay.
func (c ErrorCode) Retryable() bool {
	return c == RateLimited || c == Unavailable || c == Timeout
}

// Error is a refusal, as a client or a backend receives it.
type Error struct {
	Code    ErrorCode
	Message string
	After   time.Duration // with RateLimited: the retry delay; 0 if it is not known
	// Final means that waiting does not help, although the Code says so: the limit is one of the
	// caller itself, which must release something first.
	Final bool
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Retryable reports whether the same request may succeed after a delay. After is the least delay.
func (e *Error) Retryable() bool { return e.Code.Retryable() && !e.Final }

// Event returns the event that refuses the request with ref.
func (e *Error) Event(ref Ref) Event {
	ev := Event{Type: TypeError, Ref: ref, Code: string(e.Code), Message: e.Message}
	if e.After > 0 {
		ev.AfterMS = (e.After + time.Millisecond - 1).Milliseconds() // not too early
	}
	if e.Final {
		ev.Retry = new(false)
	}
	return ev
}

// ErrorOf returns the Error of an event.
func ErrorOf(ev Event) *Error {
	return &Error{
		Code: ErrorCode(ev.Code), Message: ev.Message, Final: ev.Retry != nil && !*ev.Retry,
		After: time.Duration(min(max(ev.AfterMS, 0), maxAfterMS)) * time.Millisecond,
	}
}

// maxAfterMS bounds the delays that an event may ask for, so that a wrong number cannot stop a
// client.
const maxAfterMS = 10 * 60 * 1000

// Errorf returns an Error with a formatted message.
func Errorf(code ErrorCode, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// DetailedError is an Error with the values that led to it, so that the caller can decide again
// without another request. errors.AsType finds the Error in it.
type DetailedError struct {
	Err *Error
	// Data is encoded as JSON, as the `data` of an error event and of an HTTP error.
	Data any
}

// With returns the error with data.
func (e *Error) With(data any) error { return &DetailedError{Err: e, Data: data} }

func (e *DetailedError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *DetailedError) Unwrap() error { return e.Err }

// BadCursor returns the error for a cursor that no page of the list has returned.
func BadCursor() *Error { return Errorf(BadRequest, "cursor: no earlier page returned it") }

// CloseReason is why the broker ends a connection. It is the `code` of a closing event and a metric
// label.
type CloseReason string

// The close reasons, and whether the client should reconnect.
const (
	CloseDraining     CloseReason = "draining"     // the server shuts down: reconnect after after_ms
	CloseSuperseded   CloseReason = "superseded"   // the same client has connected again: do not reconnect
	CloseUnauthorized CloseReason = "unauthorized" // no token or an invalid one: do not reconnect with it
	CloseExpired      CloseReason = "expired"      // the token has expired: reconnect with a new one
	CloseDisconnected CloseReason = "disconnected" // the backend asked for it: do not reconnect
	CloseBadRequest   CloseReason = "bad_request"  // not this protocol: do not reconnect
	CloseSlow         CloseReason = "slow"         // the client did not read for too long: reconnect
	CloseIdle         CloseReason = "idle"         // no pong: reconnect
	CloseOverloaded   CloseReason = "overloaded"   // connection or rate limit: reconnect after after_ms
	CloseGone         CloseReason = "gone"         // the client or the network ended it: nothing is sent
)

// closings has the rules of each reason that is sent.
var closings = map[CloseReason]struct {
	status    int // of the WebSocket close frame (RFC 6455 §7.4.2, private range)
	reconnect bool
	message   string // for people
}{
	CloseDraining:     {4001, true, "the server shuts down"},
	CloseSuperseded:   {4002, false, "the client connected elsewhere"},
	CloseUnauthorized: {4003, false, "no token, or a bad one"},
	CloseExpired:      {4004, true, "the token expired"},
	CloseDisconnected: {4005, false, "the backend has ended the connection"},
	CloseBadRequest:   {4006, false, "the messages do not follow the protocol"},
	CloseSlow:         {4007, true, "unread for too long"},
	CloseIdle:         {4008, true, "no sign of life"},
	CloseOverloaded:   {4009, true, "over a limit, or the store cannot be reached"},
}

// Status returns the status code of the WebSocket close frame, 1000 for an unknown reason.
func (r CloseReason) Status() int { return cmp.Or(closings[r].status, 1000) }

// Reconnect reports whether the client should reconnect.
func (r CloseReason) Reconnect() bool { return closings[r].reconnect }

// CloseReasonOf returns the reason with this Status. ok is false if there is none.
func CloseReasonOf(status int) (reason CloseReason, ok bool) {
	for r, c := range closings {
		if c.status == status {
			return r, true
		}
	}
	return "", false
}
