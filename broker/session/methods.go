package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"switchboard/broker/namespace"
	"switchboard/internal/meter"
	"switchboard/internal/payload"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// A Method answers the requests that name it. data is compact JSON of at most Limits.Message bytes,
// or nil if the request has none. The result is encoded as JSON and becomes the `data` of the
// reply; nil becomes null.
//
// A *wire.Error, a *wire.DetailedError and a *state.Refusal become an `error` event. Any other
// error is logged, and the client receives `unavailable`. The fields of a Refusal are only shown if
// a *ChannelError tells their channel, and if the client may read them.
//
// Every connected client may call every method, so the method decides who may do what. It runs on
// Options.MethodPool, and further messages of the same client wait for it.
type Method func(ctx context.Context, c Caller, data json.RawMessage) (any, error)

// Caller is the connection that calls a method. It is a value that stays as it was at the call.
type Caller struct {
	Client     string // the id, which begins with the user
	User       string // "" for a client without a user
	Address    string // host:port
	Server     string // the id of this server
	Generation int64  // of the client's binding

	session     *Session
	permissions permissions
}

// ChannelError is the error of a change of one channel.
type ChannelError struct {
	Channel string
	Err     error
}

func (e *ChannelError) Error() string { return fmt.Sprintf("channel %s: %v", e.Channel, e.Err) }

// Unwrap returns Err.
func (e *ChannelError) Unwrap() error { return e.Err }

// callMethod answers a request with a method.
func (s *Session) callMethod(req wire.Request) {
	method, data, err := s.findMethod(req)
	if err == nil {
		err = s.takeRequest()
	}
	if err != nil {
		s.refuse(req.Ref, err)
		return
	}
	caller := s.caller()
	callIn(s.m.opts.MethodPool, s, weight(req), func(read *meter.Meter) (json.RawMessage, error) {
		result, err := method(meter.With(s.m.methodDeadlines.Context(), read), caller, data)
		if err != nil {
			return nil, err
		}
		return encode(result)
	}, func(result json.RawMessage, err error) {
		switch {
		case s.state == closed:
		case err != nil:
			s.refuseMethod(req, err)
		default:
			s.chargeBytes(len(result))
			s.send(wire.Event{Type: wire.TypeReply, Ref: req.Ref, Data: result})
		}
	})
}

// caller returns the Caller of the session. It runs on the loop.
func (s *Session) caller() Caller {
	return Caller{
		Client: s.client, User: s.user(), Address: s.conn.RemoteAddr(), Server: s.m.opts.ServerID(),
		Generation: s.generation, session: s, permissions: s.permissions(),
	}
}

// CheckRead returns nil if the client may read the state of a channel, and otherwise a *wire.Error
// with the reason. It is for methods that answer with parts of the state.
func (c Caller) CheckRead(channel string) error {
	if c.session == nil {
		return wire.Errorf(wire.Forbidden, "channel %s: only a connection has rights", channel)
	}
	return c.permissions.check(namespace.State, channel)
}

// Caller returns the connection of a client as the caller of a method, for a call that the backend
// makes in its name. ok is false if the client has no open session here. It waits for the loop.
func (m *Manager) Caller(ctx context.Context, client string) (c Caller, ok bool) {
	found := make(chan Caller, 1)
	if !m.onLoop(client, func(s *Session) {
		if s.state == open {
			found <- s.caller()
		}
		close(found)
	}) {
		return Caller{}, false
	}
	select {
	case c, ok = <-found:
		return c, ok
	case <-ctx.Done():
		return Caller{}, false
	}
}

// findMethod returns the method of a request and its data.
func (s *Session) findMethod(req wire.Request) (method Method, data []byte, err error) {
	if err := wire.CheckMethod(req.Method); err != nil {
		return nil, nil, err
	}
	if !req.Ref.Set {
		return nil, nil, errNoRef
	}
	if method = s.m.opts.Methods[req.Method]; method == nil {
		return nil, nil, wire.Errorf(wire.NotFound, "method: there is no %s", req.Method)
	}
	if len(req.Data) > 0 {
		data, err = payload.Compact(req.Data, s.m.opts.Limits.Message)
	}
	return method, data, err
}

// encode returns the JSON of a value that a method has returned, on one line.
func encode(value any) (json.RawMessage, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // escaped markup is six times as long
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("encode the answer of a method: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte{'\n'}), nil
}

// refuseMethod answers a request whose method has failed.
func (s *Session) refuseMethod(req wire.Request, err error) {
	if refusal, ok := errors.AsType[*state.Refusal](err); ok {
		s.refuseMethodChange(req.Ref, refusal, err)
		return
	}
	answer := s.errorEvent(req.Ref, err)
	s.chargeBytes(len(answer.Data))
	s.send(answer)
}

// errorEvent returns the event for an error that may have data.
func (s *Session) errorEvent(ref wire.Ref, err error) wire.Event {
	var data json.RawMessage
	if detailed, ok := errors.AsType[*wire.DetailedError](err); ok && detailed.Data != nil {
		var encodeErr error
		if data, encodeErr = encode(detailed.Data); encodeErr != nil {
			err = encodeErr
		}
	}
	answer := s.m.refusal(err).Event(ref)
	answer.Data = data
	return answer
}

// refuseMethodChange is refuseChange for the change of a method. It shows no fields if err does not
// tell their channel, because the rights depend on the channel.
func (s *Session) refuseMethodChange(ref wire.Ref, refusal *state.Refusal, err error) {
	channel := ""
	if of, ok := errors.AsType[*ChannelError](err); ok {
		channel = of.Channel
	} else {
		hidden := *refusal
		hidden.Fields = nil
		refusal = &hidden
	}
	s.refuseChange(ref, channel, refusal)
}
