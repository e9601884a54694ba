package session

import (
	"encoding/json"
	"errors"
	"hash/fnv"
	"net/netip"
	"time"

	"switchboard/broker/limit"
	"switchboard/broker/namespace"
	"switchboard/internal/meter"
	"switchboard/internal/payload"
	"switchboard/internal/wire"
	"switchboard/queue"
)

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

// takeRequest takes one request from the connection's request rate.
func (s *Session) takeRequest() error {
	rate := s.m.rates.requests
	if rate.None() {
		return nil
	}
	wait := s.ensureRateUse().requests.Take(rate, 1, s.m.rates.now())
	if wait == 0 {
		return nil
	}
	s.m.opts.Metrics.Refused("request_rate")
	return rateLimited(wait, "more than %d requests a second (requests.rate)", s.m.opts.Requests.Rate)
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
