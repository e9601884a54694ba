package api

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"switchboard/broker/delivery"
	"switchboard/broker/limit"
	"switchboard/internal/payload"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// maxNotifyAfter is the largest notify_after, the time that receivers have to acknowledge a push.
// It must be shorter than the life of a client's record, since the record holds the
// acknowledgements. By default a record ends 150 min after its client left.
const maxNotifyAfter = time.Hour

// maxTTL is the largest ttl, the least time for which the queue of a receiver is kept after a push.
const maxTTL = 30 * 24 * time.Hour

// pushRequest is the body of a push. It must name exactly one kind of target.
type pushRequest struct {
	Channel  string          `json:"channel"`
	Channels nameList        `json:"channels"`
	User     string          `json:"user"`
	Users    nameList        `json:"users"`
	Client   string          `json:"client"`
	Clients  nameList        `json:"clients"`
	All      bool            `json:"all"`
	Data     json.RawMessage `json:"data"`
	TTL      *float64        `json:"ttl"` // seconds; with a change of fields their lease
	Key      string          `json:"key"`
	Durable  bool            `json:"durable"`

	Exclude string `json:"exclude"` // the client that does not receive the message

	NotifyAfter *float64 `json:"notify_after"` // seconds
	First       bool     `json:"first"`        // the first acknowledgement withdraws the other copies

	// The change of fields. TTL is its lease.
	Set   wire.Values `json:"set"`
	Del   nameList    `json:"del"`
	Add   wire.Values `json:"add"`
	Touch nameList    `json:"touch"`
	If    wire.Values `json:"if"`
	Of    parentNames `json:"of"`
	Own   *bool       `json:"own"` // false removes the owners. true is refused: the backend has no connection
}

// result is the result of a push to one target.
type result struct {
	Channel   string          `json:"channel,omitempty"`
	User      string          `json:"user,omitempty"`
	Client    string          `json:"client,omitempty"`
	All       bool            `json:"all,omitempty"`
	ID        int64           `json:"id,omitempty"`
	Servers   *int            `json:"servers,omitempty"`
	Online    *bool           `json:"online,omitempty"`
	Clients   *[]clientResult `json:"clients,omitempty"`
	Duplicate bool            `json:"duplicate,omitempty"`
	Fields    json.RawMessage `json:"fields,omitempty"` // the results of add, numbers by field
	Error     *errorBody      `json:"error,omitempty"`
}

type clientResult struct {
	Client    string `json:"client"`
	ID        int64  `json:"id"`
	Online    bool   `json:"online"`
	Duplicate bool   `json:"duplicate,omitempty"`
}

// pushResponse is the answer to one push.
type pushResponse struct {
	Results []result   `json:"results,omitempty"`
	Error   *errorBody `json:"error,omitempty"`
}

// checkedPush is a push whose fields are valid. Its targets are not checked yet.
type checkedPush struct {
	targets []target
	payload delivery.Payload
	change  *wire.Change // nil if the push changes no fields
}

// checkRequest validates the fields of a push. It stores nothing.
func (a api) checkRequest(req pushRequest) (checkedPush, error) {
	targets, err := a.targets(req)
	if err != nil {
		return checkedPush{}, err
	}
	p := checkedPush{targets: targets, payload: delivery.Payload{Durable: req.Durable}}
	if p.change, err = a.change(&req, targets[0].kind); err != nil {
		return checkedPush{}, err
	}
	if p.payload.Data, err = a.optionalData(&req, p.change); err != nil {
		return checkedPush{}, err
	}
	if req.Key != "" {
		if err := wire.CheckName("key", req.Key); err != nil {
			return checkedPush{}, err
		}
		p.payload.Key = req.Key
	}
	if req.TTL != nil && p.change == nil {
		p.payload.TTL = time.Duration(*req.TTL * float64(time.Second))
		switch kind := targets[0].kind; {
		case kind != "user" && kind != "client":
			return checkedPush{}, wire.Errorf(wire.BadRequest, "ttl: only a push to users or clients has one, or a push that changes fields")
		case *req.TTL < 1 || *req.TTL > maxTTL.Seconds():
			return checkedPush{}, wire.Errorf(wire.BadRequest, "ttl: %g is not within 1 and %g seconds", *req.TTL, maxTTL.Seconds())
		}
	}
	if req.NotifyAfter != nil {
		p.payload.NotifyAfter = time.Duration(*req.NotifyAfter * float64(time.Second))
		switch kind := targets[0].kind; {
		case kind != "user" && kind != "client":
			return checkedPush{}, wire.Errorf(wire.BadRequest, "notify_after: only a push to users or clients has one, since messages to channels are not acknowledged")
		case *req.NotifyAfter < 1 || *req.NotifyAfter > maxNotifyAfter.Seconds():
			return checkedPush{}, wire.Errorf(wire.BadRequest, "notify_after: %g is not within 1 and %g seconds", *req.NotifyAfter, maxNotifyAfter.Seconds())
		case !a.NotifyAfter:
			return checkedPush{}, wire.Errorf(wire.BadRequest, "notify_after: this broker sends no webhooks for undelivered messages; see webhooks.url and webhooks.events")
		}
	}
	if p.payload.First = req.First; req.First && targets[0].kind != "user" {
		return checkedPush{}, wire.Errorf(wire.BadRequest, "first: only a push to users has it, since it selects among the clients of one user")
	}
	p.payload.Exclude = req.Exclude
	return p, checkExclude(req.Exclude, targets[0].kind)
}

// appendPushes appends a push for each valid target of p. fillResults completes the results later.
func (a api) appendPushes(pushes []delivery.Push, p checkedPush) ([]delivery.Push, []result) {
	results := make([]result, len(p.targets))
	for i, t := range p.targets {
		pushes = a.appendPush(pushes, t, p.payload, p.change, &results[i])
	}
	return pushes, results
}

// appendPush appends the push to one target, or sets the error of its result r. change is nil if
// the push changes no fields.
func (a api) appendPush(pushes []delivery.Push, t target, payload delivery.Payload, change *wire.Change, r *result) []delivery.Push {
	kind := delivery.Channel
	switch t.kind {
	case "channel":
		r.Channel = t.name
	case "user":
		r.User, kind = t.name, delivery.User
	case "client":
		r.Client, kind = t.name, delivery.Client
	case "all":
		r.All = true
	}
	err := a.checkTarget(t, len(payload.Data))
	if err == nil && change != nil {
		payload.Update, err = a.update(t.name, change, payload.Data)
		if err == nil && payload.Data != nil {
			payload.Update.Exclude = payload.Exclude
		}
	}
	if err != nil {
		a.failTarget(r, err)
		return pushes
	}
	return append(pushes, delivery.Push{Kind: kind, Name: t.name, Payload: payload})
}

func (a api) failTarget(r *result, err error) { a.failTargetWithin(r, err, 0) }

func (a api) failTargetWithin(r *result, err error, limit int) {
	r.Error = a.toErrorBodyWithin(err, limit)
	a.CountPush(r.kind(), string(r.Error.Code))
}

// kind returns the kind of the target.
func (r *result) kind() string {
	switch {
	case r.All:
		return "all"
	case r.Channel != "":
		return "channel"
	case r.User != "":
		return "user"
	}
	return "client"
}

// deliver stores pushes and notifies the servers of their receivers. ctx must not end if the
// backend closes its connection.
func (a api) deliver(ctx context.Context, pushes []delivery.Push) {
	if len(pushes) > 0 {
		a.Pusher.PushBatch(ctx, pushes)
	}
}

// maxShown is about the most bytes of current fields in the answer to one call. A batch of a
// thousand refused changes could otherwise need 32 MB.
const maxShown = 1 << 20

// idsOnly is a limit of bytes within which a refusal shows only the ids of fields.
const idsOnly = 1

// fillResults completes results. The first pushes are those of the results without an error, in the
// same order. fillResults returns the remaining pushes. shown counts the bytes of the fields that
// the answer shows.
func (a api) fillResults(results []result, pushes []delivery.Push, shown *int) []delivery.Push {
	for i := range results {
		r := &results[i]
		if r.Error != nil {
			continue
		}
		p := &pushes[0]
		pushes = pushes[1:]
		if p.Err != nil {
			limit := 0
			if *shown >= maxShown {
				limit = idsOnly
			}
			a.failTargetWithin(r, p.Err, limit)
			*shown += len(r.Error.Fields)
			if p.Update != nil && p.Channel.ID != 0 { // stored, but not replicated in time
				r.setChannel(&p.Channel)
			}
			continue
		}
		switch p.Kind {
		case delivery.Channel:
			r.setChannel(&p.Channel)
		case delivery.Client:
			r.ID, r.Duplicate, r.Online = p.Client.ID, p.Client.Duplicate, &p.Client.Online
		case delivery.User:
			r.setClients(p.Clients)
		}
		a.CountPush(r.kind(), "ok")
	}
	return pushes
}

func (r *result) setChannel(c *delivery.ChannelResult) {
	r.ID, r.Duplicate, r.Servers, r.Fields = c.ID, c.Duplicate, &c.Servers, state.ShowNumbers(c.Numbers)
}

func (r *result) setClients(clients []delivery.ClientResult) {
	list := make([]clientResult, len(clients))
	r.Duplicate = len(clients) > 0
	for i, c := range clients {
		list[i] = clientResult(c)
		r.Duplicate = r.Duplicate && c.Duplicate
	}
	r.Clients = &list
}

// push answers PathPush. It does not keep b.
func (a api) push(ctx context.Context, b body, dst []byte, rate *limit.SharedBucket) Answer {
	var pushes []delivery.Push
	var results []result
	if one, ok := parseSimplePush(b.whole()); ok {
		data, err := a.payload(one)
		if err != nil {
			return a.errorAnswer(err)
		}
		results = make([]result, 1)
		pushes = a.appendPush(make([]delivery.Push, 0, 1), one.target, delivery.Payload{Data: data}, nil, &results[0])
	} else {
		req, err := readPush(b)
		if err != nil {
			return a.errorAnswer(err)
		}
		p, err := a.checkRequest(req)
		if err != nil {
			return a.errorAnswer(err)
		}
		pushes, results = a.appendPushes(make([]delivery.Push, 0, len(p.targets)), p)
	}
	if err := a.takeRate(rate, pushes); err != nil {
		return a.errorAnswer(err)
	}
	a.deliver(ctx, pushes)
	a.fillResults(results, pushes, new(int))
	return a.resultsAnswer(results, dst)
}

// payload returns a copy of the payload of a simple push, without white space.
func (a api) payload(p simplePush) ([]byte, error) {
	if !p.compact || len(p.data) > a.MaxMessage {
		return payload.Compact(p.data, a.MaxMessage)
	}
	return bytes.Clone(p.data), nil
}

// resultsAnswer returns the answer with the results. If every target failed, the answer is the
// error of the first one. It has the results too if one of them is an update that is stored.
func (a api) resultsAnswer(results []result, dst []byte) Answer {
	stored := false
	for i := range results {
		if results[i].Error == nil {
			return pushAnswer(results, dst)
		}
		stored = stored || results[i].ID != 0
	}
	p := pushResponse{Error: results[0].Error}
	if stored {
		p.Results = slices.Clone(results) // without Clone, results would escape to the heap in every call
	}
	return p.Error.answer(p)
}
