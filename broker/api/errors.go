package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"switchboard/broker/delivery"
	"switchboard/broker/limit"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// errorBody is the error in an answer.
type errorBody struct {
	Code    wire.ErrorCode `json:"code"`
	Message string         `json:"message"`

	// Of a refused change: the current fields, and the limit that is reached, see wire.StateEvent.
	Fields json.RawMessage `json:"fields,omitempty"`
	Group  string          `json:"group,omitempty"`
	Max    *int            `json:"max,omitempty"`

	Data any `json:"data,omitempty"` // of a *wire.DetailedError
}

func newErrorBody(code wire.ErrorCode, message string) *errorBody {
	return &errorBody{Code: code, Message: message}
}

// inMessage adds the index of a batch's message to the error. It does nothing if e is nil.
func (e *errorBody) inMessage(i int) {
	if e != nil {
		e.Message = fmt.Sprintf("messages[%d]: %s", i, e.Message)
	}
}

// toErrorBody returns err as the backend sees it.
func (a api) toErrorBody(err error) *errorBody { return a.toErrorBodyWithin(err, 0) }

// toErrorBodyWithin is toErrorBody, where limit is the most bytes of the current fields, see
// [state.Refusal.Show]. An error that is neither a *wire.Error nor listed here comes from the
// store.
func (a api) toErrorBodyWithin(err error, limit int) *errorBody {
	if refusal, ok := errors.AsType[*state.Refusal](err); ok {
		shown := refusal.Show(backendFilter, limit)
		return &errorBody{
			Code: refusal.Err.Code, Message: refusal.Err.Message, Fields: shown.Fields, Group: shown.Group, Max: shown.Max,
		}
	}
	if detailed, ok := errors.AsType[*wire.DetailedError](err); ok {
		return &errorBody{Code: detailed.Err.Code, Message: detailed.Err.Message, Data: detailed.Data}
	}
	if wireErr, ok := errors.AsType[*wire.Error](err); ok {
		return newErrorBody(wireErr.Code, wireErr.Message)
	}
	if errors.Is(err, registry.ErrBadCursor) {
		return newErrorBody(wire.BadRequest, wire.BadCursor().Message)
	}
	if errors.Is(err, queue.ErrNoReplicas) {
		return newErrorBody(wire.BadRequest, "durable: this broker keeps messages in memory, where there are no replicas")
	}
	if errors.Is(err, queue.ErrNotReplicated) {
		return newErrorBody(wire.Unavailable, "stored, but not confirmed by a replica in time; repeat the push with the same key to wait again")
	}
	if errors.Is(err, delivery.ErrNoAckDeadline) {
		a.Logger.Warn().Err(err).Msg("cannot store the deadline of a push with notify_after")
		return newErrorBody(wire.Unavailable, "stored, but without notify_after; repeat the push with the same key, and it is not stored twice")
	}
	if errors.Is(err, context.Canceled) { // the caller went away
		return newErrorBody(wire.Timeout, "the call was cancelled")
	}
	a.Logger.Warn().Err(err).Msg("store call failed")
	return newErrorBody(wire.Unavailable, "the store cannot be reached; try again later. A push may have been stored; repeat it with the same key, and it is not stored twice")
}

func (a api) writeError(w http.ResponseWriter, err error) { a.errorAnswer(err).writeTo(w) }

// errorAnswer returns the answer to a call that failed with err.
func (a api) errorAnswer(err error) Answer {
	e := a.toErrorBody(err)
	answer := e.answer(pushResponse{Error: e})
	if wireErr, ok := errors.AsType[*wire.Error](err); ok && wireErr.After > 0 {
		answer.RetryAfter = limit.Seconds(wireErr.After)
	}
	return answer
}

// answer returns the answer to a call that failed with e. v is its body.
func (e *errorBody) answer(v any) Answer {
	answer := jsonAnswer(e.Code.Status(), v)
	if e.Code == wire.Unavailable || e.Code == wire.RateLimited {
		answer.RetryAfter = 1
	}
	return answer
}
