package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"switchboard/internal/wire"
)

// asCall is the body of callAs.
type asCall struct {
	Client string          `json:"client"`
	Name   string          `json:"name"`
	Data   json.RawMessage `json:"data"`
}

// asAnswer is the answer to callAs: a result, or the refusal.
type asAnswer struct {
	Result  json.RawMessage `json:"result,omitempty"`
	Code    wire.ErrorCode  `json:"code,omitempty"`
	Message string          `json:"message,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"` // that of a DetailedError
}

// CallAs calls a client call of an extension in the name of a client, on the server that holds its
// connection, with in encoded as JSON, and decodes the result into out. Errors of type *wire.Error
// and *wire.DetailedError are returned. If the client is not connected there, the error is
// not_found. After a timeout or a lost link, the call may still be executed.
func (c *Cluster) CallAs(ctx context.Context, server, client, name string, in, out any) error {
	data, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("encode the call %s: %w", name, err)
	}
	q := asCall{client, name, data}
	var answer asAnswer
	if c.isSelf(server) {
		answer, err = c.callHere(ctx, q)
	} else if err = c.call(ctx, server, callAs, q, &answer); err == nil && answer.Result == nil && answer.Code == "" {
		err = errNotConnected(client) // the server is not live
	}
	if err != nil {
		return err
	}
	if answer.Code != "" {
		refusal := &wire.Error{Code: answer.Code, Message: answer.Message}
		if answer.Data == nil {
			return refusal
		}
		return &wire.DetailedError{Err: refusal, Data: answer.Data}
	}
	return json.Unmarshal(answer.Result, out)
}

func errNotConnected(client string) error {
	return wire.Errorf(wire.NotFound, "client %s: it is not connected", client)
}

// callHere executes a call on this server. A refusal is part of the answer.
func (c *Cluster) callHere(ctx context.Context, q asCall) (answer asAnswer, err error) {
	method := c.parts.ClientCall(q.Name)
	if method == nil {
		return answer, fmt.Errorf("there is no client call %s", q.Name)
	}
	var result any
	caller, ok := c.parts.Sessions.Caller(ctx, q.Client)
	if ok {
		result, err = method(ctx, caller, q.Data)
	} else {
		err = errNotConnected(q.Client)
	}
	if err == nil {
		answer.Result, err = json.Marshal(result)
		return answer, err
	}
	refusal, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return answer, err
	}
	answer.Code, answer.Message = refusal.Code, refusal.Message
	if d, ok := errors.AsType[*wire.DetailedError](err); ok {
		if answer.Data, err = json.Marshal(d.Data); err != nil {
			return answer, err
		}
	}
	return answer, nil
}
