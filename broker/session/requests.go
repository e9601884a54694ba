package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"time"

	"switchboard/broker/limit"
	"switchboard/broker/namespace"
	"switchboard/internal/meter"
	"switchboard/internal/payload"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// maxAsked is the most requests of a connection that wait for the answer of the backend's URL.
const maxAsked = 16

// askAgain is the time after which a sender at its share may send another request. An answer may
// come earlier or later.
const askAgain = time.Second

// ask sends a request to the backend's URL. Further messages do not wait for the answer: the
// backend may be slow, and a client sends other messages meanwhile.
func (s *Session) ask(ref wire.Ref, request []byte, since time.Time) {
	asked := s.shard.asked
	if asked[s] >= maxAsked {
		s.m.opts.Metrics.Refused("requests")
		s.refuse(ref, rateLimited(askAgain, "%d requests of the connection wait for the backend", maxAsked))
		return
	}
	sender := s.sender()
	if !s.m.asks.Take(sender) {
		s.m.opts.Metrics.Refused("request_share")
		s.refuse(ref, rateLimited(askAgain, "%d requests of this user or address wait for the backend (requests.share)", s.m.opts.Requests.Share))
		return
	}
	asked[s]++
	s.m.opts.Requests.Pool.Go(func() {
		data, err := s.m.opts.Requests.Ask(context.Background(), request, since) // Ask has its own timeout
		s.m.asks.Give(sender)
		s.shard.loop.Post(func() {
			if asked[s]--; asked[s] == 0 {
				delete(asked, s)
			}
			switch {
			case s.state == closed:
			case err != nil:
				s.reply(s.errorEvent(ref, err))
			default:
				s.reply(wire.Event{Type: wire.TypeReply, Ref: ref, Data: data})
			}
		})
	})
}

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

// workerRequest is the JSON that a backend worker takes from a qq_{N} list, or that the backend's
// URL receives.
type workerRequest struct {
	Ref     int64           `json:"ref"`
	Client  string          `json:"client"`
	User    string          `json:"user,omitempty"`
	Server  string          `json:"server"`
	Query   json.RawMessage `json:"query"`
	Context requestContext  `json:"context"`
	QueryAt int64           `json:"queryAt"` // ms since 1970 by the server's clock
}

type requestContext struct {
	Address string `json:"address"`
}

// request answers a request with a method, and sends any other one to the backend: to its URL, or
// into a list of its workers.
func (s *Session) request(req wire.Request) {
	if req.Method != "" {
		s.callMethod(req)
		return
	}
	err := checkRequest(&s.m.opts, s.user(), req.Ref)
	var data []byte
	if err == nil {
		data, err = payload.Compact(req.Data, s.m.opts.Limits.Message)
	}
	if err == nil {
		err = s.takeRequest()
	}
	if err != nil {
		s.refuse(req.Ref, err)
		return
	}
	now := time.Now()
	encoded, err := json.Marshal(workerRequest{
		Ref: req.Ref.Value, Client: s.client, User: s.user(), Server: s.m.opts.ServerID(),
		Query: data, Context: requestContext{s.conn.RemoteAddr()}, QueryAt: now.UnixMilli(),
	})
	if err != nil {
		s.refuse(req.Ref, err)
		return
	}
	if s.m.opts.Requests.Ask != nil {
		s.ask(req.Ref, encoded, now)
		return
	}
	request := queue.Request{Data: encoded}
	request.List, request.Sender = requestList(s.m.opts.Requests.Queues, s.user(), s.conn.RemoteAddr())
	call(s, weight(req), func(read *meter.Meter) (struct{}, error) {
		return struct{}{}, s.m.opts.Queue.PushRequest(s.m.meteredContext(read), request)
	}, func(_ struct{}, err error) {
		s.answer(wire.Event{Type: wire.TypeAccepted, Ref: req.Ref}, requestError(&s.m.opts, err))
	})
}

var errNoRef = wire.Errorf(wire.BadRequest, "ref: missing; the reply could not be matched to the request")

// checkRequest checks whether a client of the user may send requests, and whether the request has a
// ref.
func checkRequest(o *Options, user string, ref wire.Ref) error {
	from := o.Requests.From
	switch {
	case o.Requests.Queues == 0 && o.Requests.Ask == nil:
		return wire.Errorf(wire.Unavailable, "requests need a URL of the backend, or a Redis that its workers read")
	case from&namespace.Anyone != 0 || from&namespace.Users != 0 && user != "":
	case from != 0:
		o.Metrics.Refused("requests")
		return wire.Errorf(wire.Forbidden, "request: not allowed: requests are open to %s, and the client has no user", from)
	default:
		o.Metrics.Refused("requests")
		return wire.Errorf(wire.Forbidden, "request: not allowed: no client may send requests")
	}
	if !ref.Set {
		return errNoRef
	}
	return nil
}

// anonymousList is the list of all clients without a user.
const anonymousList = 0

// requestList returns the list for a client's requests, and the sender whose share of the list they
// use. The requests of one user stay in order, and so do those of all clients without a user. A
// client without a user chooses its id, and with several ids it could fill any list and have
// several shares. So all such clients have one list, and each network has one share.
func requestList(queues int, user, address string) (list int, sender string) {
	if user == "" {
		return anonymousList, "address " + network(address)
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(user))
	return int(h.Sum32() % uint32(queues)), "user " + user
}

// network returns the network of an address, which the limits count as one sender.
func network(address string) string {
	peer, err := netip.ParseAddrPort(address)
	if err != nil {
		return ""
	}
	return limit.Network(peer.Addr()).String()
}

// requestLimits are the limits of a request list, with the text of the refusal.
var requestLimits = []struct {
	err           error
	setting, text string
}{
	{queue.ErrRequestCap, "request_queue", "the request list has as many requests as it may hold"},
	{queue.ErrRequestBytes, "request_bytes", "the request list has as many bytes as it may hold"},
	{queue.ErrRequestShare, "request_share", "this sender has as many requests waiting as it may have"},
	{queue.ErrRequestShareBytes, "request_share_bytes", "this sender has as many bytes of requests waiting as it may have"},
}

// requestError replaces the errors of full lists by the *wire.Error that the client receives, and
// counts them. It returns any other error unchanged.
func requestError(o *Options, err error) error {
	for _, l := range requestLimits {
		if errors.Is(err, l.err) {
			o.Metrics.Refused(l.setting)
			return wire.Errorf(wire.RateLimited, "%s (limits.%s); try again later", l.text, l.setting)
		}
	}
	return err
}
