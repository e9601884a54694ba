package session

import (
	"cmp"
	"errors"

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
