package session

import (
	"errors"
	"slices"

	"switchboard/broker/fields"
	"switchboard/broker/namespace"
	"switchboard/internal/payload"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

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
	limits := o.Limits.Fields
	limits.Message = o.Limits.payload(perms.rules.For(req.Channel))
	var data []byte
	if len(req.Data) > 0 {
		err := perms.check(namespace.Publish, req.Channel)
		if err == nil {
			data, err = payload.Compact(req.Data, limits.Message)
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
	u, err := fields.Build(perms.rules, &w, req.Channel, change, data, limits)
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
