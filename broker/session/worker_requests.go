package session

import (
	"encoding/json"
	"errors"
	"hash/fnv"
	"net/netip"
	"time"

	"switchboard/broker/limit"
	"switchboard/broker/namespace"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// workerRequest is what a backend worker takes from qq_{N}.
type workerRequest struct {
	Ref     int64           `json:"ref"`
	Client  string          `json:"client"`
	User    string          `json:"user,omitempty"`
	Server  string          `json:"server"`
	Query   json.RawMessage `json:"query"`
	Context requestContext  `json:"context"`
	QueryAt int64           `json:"queryAt"` // ms since 1970, the server's clock
}

type requestContext struct {
	Address string `json:"address"`
}

// request puts the client's question into a list of the backend's workers.
func (s *Session) request(req wire.Request) {
	err := s.mayRequest(req)
	var data []byte
	if err == nil {
		data, err = wire.CompactData(req.Data, s.m.opts.Limits.Message)
	}
	if err == nil {
		err = s.paceRequest()
	}
	if err != nil {
		s.refuse(req.Ref, err)
		return
	}
	encoded, err := json.Marshal(workerRequest{
		Ref: req.Ref.Value, Client: s.client, User: s.user(), Server: s.m.opts.ServerID(),
		Query: data, Context: requestContext{s.conn.RemoteAddr()}, QueryAt: time.Now().UnixMilli(),
	})
	if err != nil {
		s.refuse(req.Ref, err)
		return
	}
	request := queue.Request{Data: encoded}
	request.List, request.Sender = s.requestList()
	call(s, func() (struct{}, error) {
		ctx, cancel := s.m.context()
		defer cancel()
		return struct{}{}, s.m.opts.Queue.PushRequest(ctx, request)
	}, func(_ struct{}, err error) {
		s.answer(wire.Event{Type: wire.TypeAccepted, Ref: req.Ref}, s.requestError(err))
	})
}

// mayRequest says whether the client may send requests, and this one.
func (s *Session) mayRequest(req wire.Request) error {
	from := s.m.opts.Requests.From
	switch {
	case s.m.opts.Requests.Queues == 0:
		return wire.Errorf(wire.Unavailable, "requests need a Redis that backend workers read")
	case from&namespace.Anyone != 0 || from&namespace.Users != 0 && s.user() != "":
	case from == namespace.BackendOnly:
		s.m.opts.Metrics.Refused("requests")
		return wire.Errorf(wire.Forbidden, "request: not allowed: requests are open to nobody")
	default:
		s.m.opts.Metrics.Refused("requests")
		return wire.Errorf(wire.Forbidden, "request: not allowed: requests are open to %s, and the client has no user", from)
	}
	if !req.Ref.Set {
		return wire.Errorf(wire.BadRequest, "ref: missing; the reply could not be told from others")
	}
	return nil
}

// paceRequest takes one request of the connection's rate.
func (s *Session) paceRequest() error {
	rate := s.m.requests
	if rate.None() {
		return nil
	}
	wait := s.used().requests.Take(rate, 1, s.m.since())
	if wait == 0 {
		return nil
	}
	s.m.opts.Metrics.Refused("request_rate")
	return wire.Errorf(wire.RateLimited, "more than %d requests a second; try again in %d ms",
		s.m.opts.Requests.Rate, max(1, wait.Milliseconds()))
}

// anonymousList is the list of all clients without a user.
const anonymousList = 0

// requestList is the list for the client's requests, and the sender whose share of it they take.
// One user's requests stay in order, and so do those of a client without a user: it chooses its id,
// so the id decides neither on the list, which it could fill then, nor on the share, of which it
// could have many.
func (s *Session) requestList() (list int, sender string) {
	if s.user() == "" {
		return anonymousList, "address " + s.network()
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.user()))
	return int(h.Sum32() % uint32(s.m.opts.Requests.Queues)), "user " + s.user()
}

// network is the peer's address as limits count it, without the port.
func (s *Session) network() string {
	peer, err := netip.ParseAddrPort(s.conn.RemoteAddr())
	if err != nil {
		return ""
	}
	return limit.Network(peer.Addr()).String()
}

// requestLimits are the settings that refuse a request, and what is told to the client.
var requestLimits = []struct {
	err           error
	setting, text string
}{
	{queue.ErrRequestCap, "request_queue", "the request list has as many requests as it may hold"},
	{queue.ErrRequestBytes, "request_bytes", "the request list has as many bytes as it may hold"},
	{queue.ErrRequestShare, "request_share", "as many requests of this sender wait as may"},
	{queue.ErrRequestShareBytes, "request_share_bytes", "as many bytes of this sender's requests wait as may"},
}

func (s *Session) requestError(err error) error {
	for _, l := range requestLimits {
		if errors.Is(err, l.err) {
			s.m.opts.Metrics.Refused(l.setting)
			return wire.Errorf(wire.RateLimited, "%s (limits.%s); try again later", l.text, l.setting)
		}
	}
	return err
}
