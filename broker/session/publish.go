package session

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"switchboard/broker/fields"
	"switchboard/broker/limit"
	"switchboard/broker/namespace"
	"switchboard/broker/work"
	"switchboard/internal/payload"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// publish stores a client's message to a channel, or changes its state.
func (s *Session) publish(req wire.Request) {
	rule := s.m.opts.Access.Namespaces().For(req.Channel)
	if req.Change != nil || rule != nil && (rule.Needs != "" || rule.By != "") {
		s.publishChange(req) // the store reads the needed field, and the alias of the author
	} else {
		s.publishMessage(req, rule)
	}
}

// publishMessage stores a message of a client that changes no state. rule is that of the channel,
// nil for none.
func (s *Session) publishMessage(req wire.Request, rule *namespace.Rule) {
	err := checkChannel(req)
	if err == nil {
		err = s.permissions().check(namespace.Publish, req.Channel)
	}
	if err == nil {
		err = s.checkSubscribed(req.Channel)
	}
	message := state.Message{By: s.client, Exclude: s.excludeOf(req)}
	var entry []byte
	if err == nil {
		if entry, err = encodeMessage(&message, req.Data, s.m.opts.Limits.payload(rule)); err == nil {
			err = s.takePublish(rule, req.Channel)
		}
	}
	var key string
	if err == nil {
		key, err = s.publishKey(req)
	}
	if err == nil {
		err = s.checkDurable(req)
	}
	if err != nil {
		s.refuse(req.Ref, err)
		return
	}
	p := Publication{Channel: req.Channel, Message: message, Entry: entry, Key: key, Durable: isDurable(req)}
	ref, by := req.Ref, s.publisherTo(req.Channel) // the function below must not refer to req, which would move it to the heap
	callUncharged(s.publishPool(req), s, func() (storeResult, error) {
		return s.m.publishAs(s.m.storeContext(), by, p, len(p.Message.Data))
	}, func(r storeResult, err error) {
		s.countRefused(r)
		s.answerPublished(ref, p.Channel, r.Published, err)
	})
}

// encodeMessage returns the entry of a message with data that a client has sent, and sets
// message.Data to a part of it, so that the data is copied once. limit is the most bytes of data.
func encodeMessage(message *state.Message, data []byte, limit int) (entry []byte, err error) {
	start := message.EncodeStart(min(len(data), limit))
	entry, err = payload.AppendChecked(start, data, limit)
	if err != nil {
		return nil, err
	}
	message.Data = entry[len(start):len(entry):len(entry)]
	return append(entry, '}'), nil
}

// excludeOf returns the client that does not receive a publish: the client itself if it wants no
// echo, otherwise none. It cannot exclude others, since it could hide its messages from a
// moderator.
func (s *Session) excludeOf(req wire.Request) string {
	if req.StateRequest != nil && req.Echo != nil && !*req.Echo {
		return s.client
	}
	return ""
}

// isDurable reports whether a publish waits for a replica.
func isDurable(req wire.Request) bool { return req.StateRequest != nil && req.Durable }

// checkDurable returns an error if a publish is durable and the client may not wait for a replica.
func (s *Session) checkDurable(req wire.Request) error {
	if !isDurable(req) {
		return nil
	}
	return s.permissions().check(namespace.Durable, req.Channel)
}

// publishPool returns the pool for a publish.
func (s *Session) publishPool(req wire.Request) *work.Pool {
	if isDurable(req) {
		return cmp.Or(s.m.opts.DurablePool, s.m.opts.Pool)
	}
	return s.m.opts.Pool
}

// answerPublished answers a publish with its result r, or with err. If the message is stored and no
// replica confirmed it in time, the error has the result too.
func (s *Session) answerPublished(ref wire.Ref, channel string, r Published, err error) {
	e := wire.Event{Type: wire.TypePublished, Ref: ref, Channel: channel, ID: &r.ID}
	if numbers := state.ShowNumbers(r.Numbers); numbers != nil {
		e.StateEvent = &wire.StateEvent{Fields: numbers}
	}
	switch {
	case errors.Is(err, queue.ErrNotReplicated):
		e.Type, e.Code, err = wire.TypeError, string(wire.Unavailable), nil
		e.Message = "stored, but not confirmed by a replica in time; publish again with the same key to wait again"
	case errors.Is(err, queue.ErrNoReplicas):
		err = wire.Errorf(wire.BadRequest, "durable: this broker keeps messages in memory, where there are no replicas")
	}
	s.answer(e, err)
}

// publishKey returns the idempotency key of a publish in the key space of the channel, "" for none.
// The keys of different users, and of clients without a user, are different. The space keeps them
// apart from the keys of the backend, which are names.
func (s *Session) publishKey(req wire.Request) (string, error) {
	if req.StateRequest == nil || req.Key == "" {
		return "", nil
	}
	if err := wire.CheckName("key", req.Key); err != nil {
		return "", err
	}
	if user := s.user(); user != "" {
		return "u:" + user + " " + req.Key, nil
	}
	return "c:" + s.client + " " + req.Key, nil
}

// payload returns the largest payload in bytes for a channel with that rule, which may be nil.
func (l *Limits) payload(r *namespace.Rule) int {
	if r == nil || r.Message == 0 {
		return l.Message
	}
	return min(r.Message, l.Message)
}

// checkSubscribed refuses to read or publish in a channel that has an authorizer if the client is
// not subscribed: only a subscribe asks the authorizer.
func (s *Session) checkSubscribed(channel string) error {
	if s.authorizer(channel) == nil || s.subs().find(channel) != nil {
		return nil
	}
	return wire.Errorf(wire.Forbidden, "channel %s: not subscribed", channel)
}

// takePublish takes one message from the publish rate of a channel's namespace.
func (s *Session) takePublish(r *namespace.Rule, channel string) error {
	if r == nil || r.PublishRate == 0 {
		return nil
	}
	e := s.ensureExtra()
	if e.profile == nil {
		e.profile = new(profile)
	}
	if e.profile.publishes == nil {
		e.profile.publishes = make(map[*namespace.Rule]limit.Bucket)
	}
	bucket := e.profile.publishes[r]
	wait := bucket.Take(limit.New(r.PublishRate, r.Burst()), 1, s.m.rates.now())
	e.profile.publishes[r] = bucket
	if wait == 0 {
		return nil
	}
	s.m.opts.Metrics.Refused("publish_rate")
	return rateLimited(wait, "channel %s: more than %g messages a second (publish_rate)", channel, r.PublishRate)
}

// publishChange handles a publish that changes the state of the channel.
func (s *Session) publishChange(req wire.Request) {
	err := checkChannel(req)
	if err == nil {
		err = s.checkSubscribed(req.Channel)
	}
	var update *state.Update
	if err == nil {
		update, err = s.buildUpdate(req)
	}
	var key string
	if err == nil {
		key, err = s.publishKey(req)
	}
	if err == nil {
		err = s.checkDurable(req)
	}
	if err == nil {
		err = s.takePublish(s.m.opts.Access.Namespaces().For(req.Channel), req.Channel)
	}
	if err != nil {
		s.refuse(req.Ref, err)
		return
	}
	p := Publication{Channel: req.Channel, Key: key, Durable: isDurable(req), Update: update}
	var o *ownership // nil if the update does not make the client an owner
	if slices.ContainsFunc(update.Ops, func(op state.Op) bool { return op.Own == state.Own }) {
		o = s.ensureOwnership(req.Channel)
		o.beginUpdate()
	}
	ref, by := req.Ref, s.publisherTo(req.Channel)                     // the functions below must not refer to req, which would move it to the heap
	callUncharged(s.publishPool(req), s, func() (storeResult, error) { // refuseChange charges for a refusal
		r, err := s.m.publishAs(s.m.storeContext(), by, p, update.Size())
		if o != nil {
			s.m.owners.endUpdate(o, err)
		}
		if refusal, ok := errors.AsType[*state.Refusal](err); ok {
			s.m.senders.TakeRead(by.Sender, refusal.Size())
		}
		return r, err
	}, func(r storeResult, err error) {
		if o != nil {
			s.dropUnusedOwnership(o)
		}
		s.countRefused(r)
		if refusal, ok := errors.AsType[*state.Refusal](err); ok && s.state != closed {
			s.chargeRead(refusal.Size(), 1)
			s.refuseChange(ref, p.Channel, refusal)
			return
		}
		s.answerPublished(ref, p.Channel, r.Published, err)
	})
}

// buildUpdate checks a publish and returns its update. The data of the message needs the right to
// publish. Each field needs the rights that its rule requires.
func (s *Session) buildUpdate(req wire.Request) (*state.Update, error) {
	o, perms := &s.m.opts, s.permissions()
	message := o.Limits.payload(perms.rules.For(req.Channel))
	var data []byte
	if len(req.Data) > 0 {
		err := perms.check(namespace.Publish, req.Channel)
		if err == nil {
			data, err = payload.Compact(req.Data, message)
		}
		if err != nil {
			return nil, err
		}
	}
	w := fields.Writer{
		Subject: perms.subject, Client: s.client, Generation: s.generation, Server: o.ServerID(),
		HasState: s.stateSubscription(req.Channel) != nil,
	}
	change := req.Change
	if change == nil {
		change = &wire.Change{}
	}
	u, err := fields.Build(perms.rules, &w, req.Channel, change, data, o.Limits.StateLimits, message)
	if refusal, ok := errors.AsType[*wire.Error](err); ok && refusal.Code == wire.Forbidden {
		o.Metrics.Refused(namespace.Write.String())
	}
	if err == nil && data != nil {
		u.Exclude = s.excludeOf(req)
	}
	return u, err
}

// refuseChange answers a publish whose update was refused. A client that may read the state also
// receives the current values of the fields.
func (s *Session) refuseChange(ref wire.Ref, channel string, refusal *state.Refusal) {
	if rule := s.permissions().rules.For(channel); rule != nil && rule.Needs != "" && refusal.Field == rule.NeededField(s.user()) {
		s.m.opts.Metrics.Refused(namespace.Publish.String())
		s.refuse(ref, wire.Errorf(wire.Forbidden, "channel %s: only its members may publish", channel))
		return
	}
	var filter state.Filter
	if sub := s.stateSubscription(channel); sub != nil {
		filter = sub.Filter()
	} else if p := s.permissions(); p.rules.Allows(p.subject, namespace.State, channel) {
		filter.State = true
	}
	shown := refusal.Show(filter, 0)
	answer := refusal.Err.Event(ref)
	answer.StateEvent = shown
	s.send(answer)
}

// storeResult is the result of publishAs.
type storeResult struct {
	Published
	limit string // the limit that refused the publish, for Metrics.Refused; "" for none
}

// publisher is the sender of a publish, and whether its connection is subscribed to the channel.
// The subscribe has then counted as the new channel, and the first publish does not count again.
type publisher struct {
	limit.Sender
	subscribed bool
}

// publisherTo returns the sender of a publish to a channel. It runs on the loop.
func (s *Session) publisherTo(channel string) publisher {
	return publisher{s.sender(), s.subs().find(channel) != nil}
}

// publishAs stores a publish of that many bytes, unless the sender has stored too much or the
// publish would create a channel too many. It runs in the pool.
func (m *Manager) publishAs(ctx context.Context, by publisher, p Publication, bytes int) (storeResult, error) {
	reserved, wait := m.senders.Reserve(ctx, by.Sender, bytes, by.subscribed)
	if wait > 0 {
		return storeResult{limit: "user_stored"}, rateLimited(wait,
			"channel %s: more than %d bytes an hour stored by one user or address (limits.user_stored)", p.Channel, m.opts.Limits.UserStored)
	}
	p.ExistingOnly = reserved.ChannelWait > 0
	r, err := m.opts.Publish(ctx, p)
	stored := err == nil || errors.Is(err, queue.ErrNotReplicated)
	m.senders.Settle(reserved, stored || queue.OutcomeUnknown(err), stored && r.New)
	if errors.Is(err, queue.ErrNewChannel) {
		return storeResult{limit: newChannelsLimit}, newChannelError(&m.opts, p.Channel, reserved.ChannelWait)
	}
	return storeResult{Published: r}, err
}

// newChannelsLimit names the limit of newChannelError.
const newChannelsLimit = "new_channels"

// newChannelError returns the refusal of a message that would create one channel too many. wait is
// the time until the client may create a channel.
func newChannelError(o *Options, channel string, wait time.Duration) error {
	return rateLimited(wait, "channel %s: more than %d new channels a minute (limits.new_channels)", channel, o.Limits.NewChannels)
}

// countRefused counts the limit that refused a publish.
func (s *Session) countRefused(r storeResult) {
	if r.limit != "" {
		s.m.opts.Metrics.Refused(r.limit)
	}
}
