package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// held is the state of a channel that a client keeps across connections.
type held struct {
	prefix   string
	position int64
	follower *state.Follower
}

// cloneFollower returns a follower that continues alone.
func cloneFollower(f *state.Follower) *state.Follower {
	next := new(state.Follower)
	page := &wire.StateEvent{First: true, Fields: f.Map().Pages(0, state.Filter{State: true}, 1<<30)[0]}
	if err := next.Page(f.Map().ID, false, page); err != nil {
		panic(err)
	}
	return next
}

// follows reports whether the subscription sees the state.
func (s *subscription) follows() bool { return s.filter.State }

// subscribeState subscribes to a channel with its state, or asks for it on a subscription. If the
// client holds the state at its position, it may continue with that.
func (c *conn) subscribeState(channel string) {
	w := c.client.w
	prefix := pick(w, []string{"", "", members})
	req := wire.Request{Type: wire.TypeSubscribe, Channel: channel, StateRequest: &wire.StateRequest{State: &wire.Selector{Prefix: prefix}}}
	s := c.subs[channel]
	switch kept := c.client.held[channel]; {
	case s != nil:
		req.Held = s.follower != nil && s.follower.Held() && s.filter.Prefix == prefix && w.oneIn(2)
	case kept != nil && kept.position == c.client.position[channel] && !w.oneIn(4):
		req.State.Prefix, req.Held, req.After = kept.prefix, true, &kept.position
	default:
		req.After = c.client.resumePosition(channel)
	}
	w.log("%v subscribes to %s with the state %q, held %v, after %s", c, channel, req.State.Prefix, req.Held, describe(req.After))
	c.send(req)
}

// beginState handles the answer to subscribeState.
func (c *conn) beginState(channel string, req request, recovered *bool) {
	s := c.subs[channel]
	before := s.filter
	s.filter = state.Filter{State: true, Prefix: req.state.Prefix, By: true}
	switch kept := c.client.held[channel]; {
	case before == s.filter && req.held: // on a subscription that holds the state
	case req.held && recovered != nil && *recovered && kept != nil:
		s.follower = cloneFollower(kept.follower)
	default:
		s.follower = new(state.Follower)
	}
}

// keepState notes the state that the client holds at its position.
func (c *conn) keepState(channel string, s *subscription) {
	if !c.newest() {
		return
	}
	delete(c.client.held, channel)
	if s.follows() && s.follower.Held() {
		c.client.held[channel] = &held{s.filter.Prefix, s.cursor, s.follower}
	}
}

// page processes a page of the state.
func (c *conn) page(e wire.Event) {
	w, s, id := c.client.w, c.subs[e.Channel], *e.ID
	if s == nil || !s.follows() {
		w.violate("%v received a page of %s without a subscription with state", c, e.Channel)
		return
	}
	if id < s.cursor {
		w.violate("%v received a page of %s at %d, and is at %d", c, e.Channel, id, s.cursor)
	}
	if err := s.follower.Page(id, e.More, e.StateEvent); err != nil {
		w.violate("%v: %v", c, err)
	}
	if e.More {
		return
	}
	f := w.model.fieldsOf(e.Channel)
	got, want := s.follower.Map().Fields, filtered(f.at(id), s.filter)
	if len(got) == 0 && f.endsAfter(id) {
		want = nil
	}
	for name, field := range want {
		if _, found := got[name]; !found && field.Until > 0 && field.Until <= w.storeNow() {
			delete(want, name)
		}
	}
	if !maps.EqualFunc(got, want, sameShown) {
		w.violate("%v: the pages of %s at %d have\n  %s\nthe fold of the log has\n  %s", c, e.Channel, id, describeFields(got), describeFields(want))
	}
	c.keepState(e.Channel, s)
}

// visible reports whether subscribers with a filter receive the message with an id.
func (f *fieldsModel) visible(id int64, filter state.Filter) bool {
	entry := f.entry(id)
	if f.w.model.channel(f.channel).erased[id] != 0 {
		return left(entry).Show(filter) != nil
	}
	return entry == nil || entry.Erase != 0 || entry.Data != nil || entry.Show(filter) != nil
}

// nextVisible returns the first id above after that a subscription receives, or 0.
func (m *model) nextVisible(channel string, after int64, filter state.Filter) int64 {
	j := m.channel(channel)
	for _, id := range j.between(after, j.last()) {
		if m.fieldsOf(channel).visible(id, filter) {
			return id
		}
	}
	return 0
}

// change checks the data and the changes of a message, and applies them.
func (c *conn) change(s *subscription, e wire.Event) {
	w, entry := c.client.w, c.client.w.model.fieldsOf(e.Channel).entry(*e.ID)
	data, shown := []byte(w.model.channel(e.Channel).data[*e.ID]), (*wire.StateEvent)(nil)
	if entry != nil {
		data, shown = entry.Data, entry.Show(s.filter)
	}
	switch {
	case entry != nil && entry.Erase != 0:
		shown = &wire.StateEvent{Erase: entry.Erase}
		c.reported(e.Channel, *e.ID)
	case len(e.Data) > 0:
		c.checkRevealed(e.Channel, s, *e.ID)
	case w.model.channel(e.Channel).erased[*e.ID] != 0 && (len(data) > 0 || e.StateEvent == nil || e.By == ""):
		data, shown = nil, left(entry).Show(s.filter)
	}
	if string(e.Data) != string(data) || string(toJSON(e.StateEvent)) != string(toJSON(shown)) {
		w.violate("%v received message %d of %s as %s, want %s with %s", c, *e.ID, e.Channel, toJSON(e), data, toJSON(shown))
	}
	if !s.follows() {
		return
	}
	if !s.follower.Held() {
		w.violate("%v received message %d of %s before the last page", c, *e.ID, e.Channel)
	}
	s.follower.Message(*e.ID, e.StateEvent)
}

// checkFields checks that a subscriber has the fields of the store.
func (c *conn) checkFields(channel string, s *subscription) {
	w, f := c.client.w, c.client.w.model.fieldsOf(channel)
	if !s.follower.Held() {
		w.violate("%v has not received the last page of %s", c, channel)
	}
	stored := f.stored()
	if announced := w.model.announced(channel); announced < f.fold.ID {
		id := max(announced, s.cursor, s.follower.Map().ID)
		if len(s.follower.Map().Fields) == 0 && f.endsAfter(id) { // its pages were read after the end
			return
		}
		at := &state.Map{Fields: maps.Clone(f.at(id))}
		at.Expire(w.storeNow())
		stored = at.Fields
	} else if len(stored) == 0 && f.hasEnded() {
		return
	}
	stored = filtered(stored, s.filter)
	got := &state.Map{Fields: maps.Clone(s.follower.Map().Fields)}
	got.Expire(w.storeNow())
	if !maps.EqualFunc(got.Fields, stored, sameShown) {
		w.violate("%v has of %s\n  %s\nthe store has\n  %s", c, channel, describeFields(got.Fields), describeFields(stored))
	}
}

// publishChange changes fields.
func (c *conn) publishChange(channel string) {
	w := c.client.w
	change := new(wire.Change)
	switch w.rng.IntN(10) {
	case 0, 1, 2:
		change.Set = wire.Values{{Name: members + wire.ClientPart(c.client.name), JSON: json.RawMessage(`"here"`)}}
	case 3:
		change.Set = wire.Values{{Name: members + pick(w, []string{"c1", "c2", "c3"}), JSON: json.RawMessage(`"shared"`)}}
	case 4:
		own := false
		change.Set = wire.Values{{Name: members + wire.ClientPart(c.client.name), JSON: json.RawMessage(`"not owned"`)}}
		change.Own = &own
	case 5, 6:
		change.Set = wire.Values{{Name: seats + pick(w, []string{"1", "2", "3", "4", "5"}), JSON: json.RawMessage(fmt.Sprint(c.number))}}
		if w.oneIn(2) {
			ttl := float64(1+w.rng.IntN(50)) / 1000
			change.TTL = &ttl
		}
	case 7:
		change.Set = wire.Values{{Name: "hat/" + pick(w, []string{"c1", "c2", wire.ClientPart(c.client.name)}), JSON: json.RawMessage(`1`)}}
	case 8:
		change.Add = wire.Values{{Name: "count", JSON: json.RawMessage(`{"by":1,"max":5}`)}}
	default:
		change.Del = []string{pick(w, []string{"count", "turn", seats + "1", members + wire.ClientPart(c.client.name)})}
	}
	if f := w.model.fieldsOf(channel).fold.Fields["turn"]; w.oneIn(4) {
		change.If = wire.Values{{Name: "turn", JSON: json.RawMessage(fmt.Sprint(f.ID))}}
		change.Set = append(change.Set, wire.Value{Name: "turn", JSON: json.RawMessage(fmt.Sprint(c.number))})
	}
	req := wire.Request{Type: wire.TypePublish, Channel: channel, Change: change}
	if w.oneIn(2) {
		req.Data = json.RawMessage(fmt.Sprint(c.refs + 1))
	}
	w.log("%v changes fields of %s: %s", c, channel, toJSON(req))
	c.send(req)
}

// published checks the answer to publishChange.
func (c *conn) published(req request, e wire.Event) {
	entry := c.client.w.model.fieldsOf(req.channel).entry(*e.ID)
	if entry == nil || entry.By != c.client.name || string(entry.Data) != string(req.data) {
		c.client.w.violate("%v published %s as %d, but the log has %+v there", c, toJSON(req.change), *e.ID, entry)
	}
}

// isRefusal reports whether a publish may be refused with a code.
func isRefusal(req request, code string) bool {
	return req.kind == wire.TypePublish && slices.Contains(updateCodes, wire.ErrorCode(code))
}

// stepState lets a client do something about the state of a channel.
func (c *conn) stepState(channel string) {
	w, s := c.client.w, c.subs[channel]
	switch subscribes := s == nil || !s.follows(); {
	case subscribes && !w.oneIn(4) || w.oneIn(10):
		if !c.hasRequest(channel) && c.maySubscribe(channel) {
			c.subscribeState(channel)
		}
	case len(c.requests) < 4:
		c.publishChange(channel)
	}
}
