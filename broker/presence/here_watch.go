package presence

import (
	"cmp"
	"encoding/json"
	"slices"

	"switchboard/broker/dialect"
	"switchboard/broker/loop"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// showLocked updates the change of a value that the watchers of v receive. They see the value of a
// member unless it has ended, it is from an older connection, or the channel is large. changed says
// that the value is new. showLocked reports whether the watchers have something to receive.
func (h *hereChannel) showLocked(v *View, value *hereValue, changed bool) bool {
	if v == nil {
		return false
	}
	e, isMember := v.members.clients[value.client]
	visible := value.data != nil && e.member.Generation <= value.generation && len(v.members.clients) <= v.members.largeChannel
	switch {
	case !isMember:
		value.forgetShown() // the leave has ended it
		return false
	case visible && (changed || !value.shown):
		value.shown, value.message = true, v.hereMessage(e.member, value.data)
	case !visible && value.shown:
		value.shown, value.message = false, v.hereMessage(e.member, json.RawMessage("null"))
	default:
		return false
	}
	value.seq = h.p.here.seq.Add(1)
	return true
}

// forgetShown resets what the watchers know of a value.
func (v *hereValue) forgetShown() { v.shown, v.seq, v.message = false, 0, nil }

// hereMessage returns the event with a member's value.
func (v *View) hereMessage(m registry.Member, data json.RawMessage) *dialect.Message {
	m = forClients(m)
	return v.p.opts.Messages.Event(wire.Event{Type: wire.TypeHere, Channel: v.channel, Client: m.Client, User: m.User, Data: data})
}

// changeHereLocked applies a change of a server's roster to the values. newServer says that the
// server had no members before.
func (v *View) changeHereLocked(server string, newServer bool, c registry.PresenceChange) {
	h := v.p.lockHere(v.channel, false)
	if h == nil {
		return
	}
	defer h.mu.Unlock()
	for _, m := range v.members.left {
		if value := h.values[m.Client]; value != nil {
			value.forgetShown() // also if the client is in joined, with another user
		}
	}
	post := false
	for _, m := range c.Join {
		if value := h.values[m.Client]; value != nil {
			post = h.showLocked(v, value, false) || post
		}
	}
	if post {
		v.postHereLocked()
	}
	if newServer && server != v.p.opts.ServerID() && len(h.values) > 0 {
		h.newServers = append(h.newServers, server)
		h.scheduleLocked(0)
	}
}

// hereDelivery is the task that delivers the changes of values up to a seq.
type hereDelivery struct {
	view *View
	upTo int64
}

// postHereLocked makes every loop that has watchers deliver the changes so far. The caller also
// holds hereChannel.mu.
func (v *View) postHereLocked() {
	task := &hereDelivery{v, v.p.here.seq.Load()}
	for i := range v.perLoop {
		if v.perLoop[i].count.Load() > 0 {
			v.p.opts.Loops[i].PostTask(task)
		}
	}
}

// Run implements loop.Task.
func (d *hereDelivery) Run(on *loop.Loop) {
	l := &d.view.perLoop[on.Index]
	l.hereUpTo = d.upTo
	since := d.upTo
	for _, s := range l.subs {
		switch {
		case s.stale || s.hereSeq >= d.upTo:
		case s.watcher.Backlogged():
			s.hereMissed = true
		default:
			since = min(since, s.hereSeq)
		}
	}
	if since == d.upTo {
		return
	}
	changes := d.view.hereChanges(since, d.upTo)
	for i := 0; i < len(l.subs); {
		s := l.subs[i]
		if !s.stale && !s.hereMissed && s.hereSeq < d.upTo {
			changes.write(s, d.upTo)
		}
		if i < len(l.subs) && l.subs[i] == s { // a failed write removes the subscription
			i++
		}
	}
}

// hereChanges are changes of values, sorted by seq, for the watchers of one loop.
type hereChanges struct {
	list   []hereValue   // only client, seq and message are set
	shared dialect.Batch // all of them
	own    dialect.Batch // some of them, for one watcher
}

// hereChanges returns the changes after since, up to upTo. If a value has changed again,
// a later delivery has it.
func (v *View) hereChanges(since, upTo int64) *hereChanges {
	c := &hereChanges{}
	h := v.p.lockHere(v.channel, false)
	if h == nil {
		return c
	}
	for _, value := range h.values {
		if value.seq > since && value.seq <= upTo {
			c.list = append(c.list, hereValue{client: value.client, seq: value.seq, message: value.message})
		}
	}
	h.mu.Unlock()
	slices.SortFunc(c.list, func(a, b hereValue) int { return cmp.Compare(a.seq, b.seq) })
	for _, change := range c.list {
		c.shared.Messages = append(c.shared.Messages, change.message)
	}
	return c
}

// write writes to one watcher the changes that it does not know, without its own value.
func (c *hereChanges) write(s *Subscription, upTo int64) {
	known, self := s.hereSeq, s.watcher.Client()
	if s.showsAliases() {
		v := s.view.(*View)
		self, _ = v.p.aliasOf(v.channel, self)
	}
	s.hereSeq = upTo
	skip := func(change hereValue) bool { return change.seq <= known || change.client == self }
	batch := &c.shared
	if slices.ContainsFunc(c.list, skip) {
		messages := c.own.Messages[:0]
		for _, change := range c.list {
			if !skip(change) {
				messages = append(messages, change.message)
			}
		}
		c.own.Reset(messages)
		batch = &c.own
	}
	if len(batch.Messages) > 0 {
		s.watcher.Write(batch)
	}
}

// resumeHere delivers the changes that were not delivered while the socket was backed up: of each
// client the newest. It returns false if some were forgotten, so that a snapshot must be sent.
func (s *Subscription) resumeHere() bool {
	s.hereMissed = false
	v, upTo := s.view.(*View), s.watchers.hereUpTo // users have no values
	changes := v.hereChanges(s.hereSeq, upTo)
	v.mu.Lock()
	forgotten := v.hereForgotten > s.hereSeq
	v.mu.Unlock()
	if forgotten {
		return false
	}
	if s.hereSeq < upTo {
		changes.write(s, upTo)
	}
	return true
}
