package api

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"switchboard/broker/delivery"
	"switchboard/broker/limit"
	"switchboard/broker/namespace"
	"switchboard/internal/wire"
)

// maxNotifyAfter is the longest that a push may give its receivers to acknowledge it: what a device has acknowledged is
// known as long as its record is, which by default is 150 min after it has gone.
const maxNotifyAfter = time.Hour

// maxTTL is the longest that a push may ask its queue to be kept.
const maxTTL = 30 * 24 * time.Hour

// pushRequest is the body of a push: exactly one kind of target.
type pushRequest struct {
	Channel  string          `json:"channel"`
	Channels names           `json:"channels"`
	User     string          `json:"user"`
	Users    names           `json:"users"`
	Client   string          `json:"client"`
	Clients  names           `json:"clients"`
	All      bool            `json:"all"`
	Data     json.RawMessage `json:"data"`
	TTL      *float64        `json:"ttl"` // seconds
	Key      string          `json:"key"`
	Durable  bool            `json:"durable"`

	NotifyAfter *float64 `json:"notify_after"` // seconds
	First       bool     `json:"first"`
}

// target is one receiver of a push.
type target struct{ kind, name string }

// result is what became of a push to one target.
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
	Error     *refusalBody    `json:"error,omitempty"`
}

type clientResult struct {
	Client    string `json:"client"`
	ID        int64  `json:"id"`
	Online    bool   `json:"online"`
	Duplicate bool   `json:"duplicate,omitempty"`
}

// pushed is the answer to one push.
type pushed struct {
	Results []result     `json:"results,omitempty"`
	Error   *refusalBody `json:"error,omitempty"`
}

// plan is a push that was checked: nothing of it is stored yet.
type plan struct {
	targets []target
	payload delivery.Payload
}

// check reads the targets and the payload; nothing is stored when it fails.
func (a api) check(req pushRequest) (plan, error) {
	targets, err := a.targets(req)
	if err != nil {
		return plan{}, err
	}
	p := plan{targets: targets, payload: delivery.Payload{Durable: req.Durable}}
	if p.payload.Data, err = wire.CompactData(req.Data, a.MaxMessage); err != nil {
		return plan{}, err
	}
	if req.Key != "" {
		if err := wire.CheckName("key", req.Key); err != nil {
			return plan{}, err
		}
		p.payload.Key = req.Key
	}
	if req.TTL != nil {
		p.payload.TTL = time.Duration(*req.TTL * float64(time.Second))
		switch kind := targets[0].kind; {
		case kind != "user" && kind != "client":
			return plan{}, wire.Errorf(wire.BadRequest, "ttl: only a push to users or clients has one")
		case *req.TTL < 1 || *req.TTL > maxTTL.Seconds():
			return plan{}, wire.Errorf(wire.BadRequest, "ttl: %g is not within 1 and %g seconds", *req.TTL, maxTTL.Seconds())
		}
	}
	if req.NotifyAfter != nil {
		p.payload.NotifyAfter = time.Duration(*req.NotifyAfter * float64(time.Second))
		switch kind := targets[0].kind; {
		case kind != "user" && kind != "client":
			return plan{}, wire.Errorf(wire.BadRequest, "notify_after: only a push to users or clients has one: what goes to channels is not acknowledged")
		case *req.NotifyAfter < 1 || *req.NotifyAfter > maxNotifyAfter.Seconds():
			return plan{}, wire.Errorf(wire.BadRequest, "notify_after: %g is not within 1 and %g seconds", *req.NotifyAfter, maxNotifyAfter.Seconds())
		case !a.Notifies:
			return plan{}, wire.Errorf(wire.BadRequest, "notify_after: this broker tells nobody of undelivered messages; see webhooks.url and webhooks.events")
		}
	}
	if p.payload.First = req.First; req.First && targets[0].kind != "user" {
		return plan{}, wire.Errorf(wire.BadRequest, "first: only a push to users has it: it is among the devices of one user")
	}
	return p, nil
}

// targets is the one kind of target that req names.
func (a api) targets(req pushRequest) ([]target, error) {
	var kinds [][]target
	for _, field := range []struct {
		kind, one string
		many      []string
	}{{"channel", req.Channel, req.Channels}, {"user", req.User, req.Users}, {"client", req.Client, req.Clients}} {
		if field.one != "" {
			kinds = append(kinds, []target{{field.kind, field.one}})
		}
		if field.many != nil {
			list := make([]target, len(field.many))
			for i, name := range field.many {
				list[i] = target{field.kind, name}
			}
			kinds = append(kinds, list)
		}
	}
	if req.All {
		kinds = append(kinds, []target{{"all", wire.AllChannel}})
	}
	switch {
	case len(kinds) != 1:
		return nil, wire.Errorf(wire.BadRequest,
			"exactly one of channel, channels, user, users, client, clients and all is needed, not %d", len(kinds))
	case len(kinds[0]) == 0:
		return nil, wire.Errorf(wire.BadRequest, "the list of targets is empty")
	case len(kinds[0]) > min(a.MaxBatch, a.MaxTargets):
		return nil, wire.Errorf(wire.TooLarge, "%d targets, at most %d are allowed", len(kinds[0]), min(a.MaxBatch, a.MaxTargets))
	}
	return kinds[0], nil
}

// checkTarget says what is wrong with one target; the others are not concerned. size is of the payload, in bytes.
func (a api) checkTarget(t target, size int) error {
	if t.kind == "all" {
		return nil
	}
	if t.kind == "client" {
		return wire.CheckClientID(t.name)
	}
	if err := wire.CheckName(t.kind, t.name); err != nil {
		return err
	}
	if t.kind == "channel" && wire.IsSystem(t.name) {
		return wire.Errorf(wire.Forbidden, "channel %s: it is the system's own", t.name)
	}
	if t.kind != "channel" {
		return nil
	}
	if err := a.may(namespace.Publish, t.name); err != nil {
		return err
	}
	if r := a.Namespaces().For(t.name); r != nil && r.Message > 0 && size > r.Message {
		return wire.Errorf(wire.TooLarge, "data: %d bytes, at most %d are allowed to channel %s", size, r.Message, t.name)
	}
	return nil
}

// may says whether the backend may do that on the channel: it may wherever a namespace fits. A channel that none fits is
// closed to clients, so what was pushed there would reach nobody.
func (a api) may(do namespace.Action, channel string) error {
	set := a.Namespaces()
	if !set.Configured() {
		return nil
	}
	backend := namespace.Subject{Backend: true}
	if !set.Allows(backend, do, channel) {
		_, why := set.Decide(backend, do, channel)
		return wire.Errorf(wire.Forbidden, "channel %s: %s", channel, why)
	}
	return nil
}

// add appends a push for each target of a plan, but for those that are refused. The results are without the rest yet.
func (a api) add(pushes []delivery.Push, p plan) ([]delivery.Push, []result) {
	results := make([]result, len(p.targets))
	for i, t := range p.targets {
		pushes = a.addOne(pushes, t, p.payload, &results[i])
	}
	return pushes, results
}

// addOne is add for one target, whose result is r.
func (a api) addOne(pushes []delivery.Push, t target, payload delivery.Payload, r *result) []delivery.Push {
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
	if err := a.checkTarget(t, len(payload.Data)); err != nil {
		a.refuse(r, err)
		return pushes
	}
	return append(pushes, delivery.Push{Kind: kind, Name: t.name, Payload: payload})
}

func (a api) refuse(r *result, err error) {
	r.Error = a.refusal(err)
	a.CountPush(r.kind(), string(r.Error.Code))
}

// kind is that of the target.
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

// deliver stores pushes and has their receivers told. ctx must not end when the caller has gone away.
func (a api) deliver(ctx context.Context, pushes []delivery.Push) {
	if len(pushes) > 0 {
		a.Pusher.PushBatch(ctx, pushes)
	}
}

// finish completes results by the pushes that add made with them, and returns those behind.
func (a api) finish(results []result, pushes []delivery.Push) []delivery.Push {
	for i := range results {
		r := &results[i]
		if r.Error != nil {
			continue
		}
		p := &pushes[0]
		pushes = pushes[1:]
		if p.Err != nil {
			a.refuse(r, p.Err)
			continue
		}
		switch p.Kind {
		case delivery.Channel:
			r.ID, r.Duplicate, r.Servers = p.Channel.ID, p.Channel.Duplicate, &p.Channel.Servers
		case delivery.Client:
			r.ID, r.Duplicate, r.Online = p.Client.ID, p.Client.Duplicate, &p.Client.Online
		case delivery.User:
			r.setClients(p.Clients)
		}
		a.CountPush(r.kind(), "ok")
	}
	return pushes
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

// push answers PathPush. What is stored of b is copied.
func (a api) push(ctx context.Context, b body, dst []byte, by *limit.SharedBucket) Answer {
	var pushes []delivery.Push
	var results []result
	if one, plain := lonePush(b.whole()); plain {
		data, err := a.data(one)
		if err != nil {
			return a.failed(err)
		}
		results = make([]result, 1)
		pushes = a.addOne(make([]delivery.Push, 0, 1), one.target, delivery.Payload{Data: data}, &results[0])
	} else {
		var req pushRequest
		if err := read(b.reader(), &req); err != nil {
			return a.failed(err)
		}
		p, err := a.check(req)
		if err != nil {
			return a.failed(err)
		}
		pushes, results = a.add(make([]delivery.Push, 0, len(p.targets)), p)
	}
	if err := a.spend(by, pushes); err != nil {
		return a.failed(err)
	}
	a.deliver(ctx, pushes)
	a.finish(results, pushes)
	return a.answer(results, dst)
}

// data is a copy of the payload of a plain push.
func (a api) data(p onePush) ([]byte, error) {
	if !p.compact || len(p.data) > a.MaxMessage {
		return wire.CompactData(p.data, a.MaxMessage)
	}
	return bytes.Clone(p.data), nil
}

// answer gives the results; when no target accepted the push it is the error of the first.
func (a api) answer(results []result, dst []byte) Answer {
	for i := range results {
		if results[i].Error == nil {
			return accepted(results, dst)
		}
	}
	first := results[0].Error
	return a.failed(&wire.Error{Code: first.Code, Message: first.Message})
}
