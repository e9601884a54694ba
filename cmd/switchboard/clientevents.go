package main

import (
	"encoding/json"
	"errors"
	"time"

	"switchboard/client"
	"switchboard/internal/wire"
)

// event is a line of connect: a message of docs/protocol.md, as far as the Go client shows it.
type event struct {
	Type    string          `json:"type"`
	Ref     wire.Ref        `json:"ref,omitzero"`
	Channel string          `json:"channel,omitempty"`
	Client  string          `json:"client,omitempty"`
	User    string          `json:"user,omitempty"`
	Server  string          `json:"server,omitempty"`
	URL     string          `json:"url,omitempty"`
	After   *int64          `json:"after,omitempty"`
	ID      *int64          `json:"id,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	By      string          `json:"by,omitempty"`

	TokenIgnored bool `json:"token_ignored,omitempty"`

	Recovered *bool            `json:"recovered,omitempty"`
	Messages  *[]client.Stored `json:"messages,omitempty"`
	More      *bool            `json:"more,omitempty"`
	Joined    []client.Member  `json:"joined,omitempty"`
	Left      []client.Member  `json:"left,omitempty"`
	Clients   *[]client.Member `json:"clients,omitempty"`
	Count     int              `json:"count,omitempty"`
	Fields    any              `json:"fields,omitempty"` // fields of a state, or numbers of a publish
	Code      string           `json:"code,omitempty"`
	Message   string           `json:"message,omitempty"`
	AfterMS   int64            `json:"after_ms,omitempty"` // the client tries again after this time
	Final     bool             `json:"final,omitempty"`    // the client does not try again

	// The changes of fields in a message.
	Cleared bool                        `json:"cleared,omitempty"`
	Gone    map[string]client.EndReason `json:"gone,omitempty"`
	Del     []string                    `json:"del,omitempty"`
	Set     map[string]json.RawMessage  `json:"set,omitempty"`
	Until   map[string]int64            `json:"until,omitempty"`
	Away    map[string]int64            `json:"away,omitempty"`
	Back    []string                    `json:"back,omitempty"`
}

// field is a field of a state.
type field struct {
	ID    int64           `json:"id"`
	Value json.RawMessage `json:"value"`
	Until int64           `json:"until,omitempty"` // Unix ms
	Away  bool            `json:"away,omitempty"`
}

// handle sets the callbacks of the client. They print events.
func (l *liveClient) handle(o *client.Options) {
	o.OnState = l.stateChanged
	o.OnMessage = l.received
	o.OnFields = func(s client.Snapshot) {
		l.arrived(event{Type: "state", Channel: s.Channel, ID: &s.ID, Fields: fieldsOf(s.Fields)})
	}
	o.OnPresence = func(p client.Presence) {
		e := event{Type: "presence", Channel: p.Channel, Joined: p.Joined, Left: p.Left, Count: p.Count}
		if p.All != nil {
			e.Clients = &p.All
		}
		l.arrived(e)
	}
	o.OnHere = func(h client.Here) {
		data := h.Data
		if data == nil {
			data = json.RawMessage("null")
		}
		l.arrived(event{Type: "here", Channel: h.Channel, Client: h.Client, User: h.User, Data: data})
	}
	o.OnGap = func(g client.Gap) {
		l.arrived(event{Type: "gap", Channel: g.Channel, After: &g.After, ID: &g.ID})
	}
	o.OnUnsubscribed = func(channel string, err *client.Error) {
		l.mu.Lock()
		delete(l.subscribed, channel)
		l.mu.Unlock()
		l.printEvent(event{Type: "unsubscribed", Channel: channel, Code: string(err.Code), Message: err.Message})
	}
}

// stateChanged prints that the client is connected, or is no longer.
func (l *liveClient) stateChanged(s client.State) {
	switch s.Phase {
	case client.Connected:
		l.printEvent(event{Type: "connected", Client: s.Client, User: s.User, Server: s.Server, URL: s.URL, TokenIgnored: s.TokenIgnored})
		l.mu.Lock()
		defer l.mu.Unlock()
		select {
		case <-l.connected:
		default:
			close(l.connected)
		}
	case client.Closed:
		if s.Final && s.Err == nil {
			return // this command has ended it
		}
		e := event{Type: "closed", URL: s.URL, AfterMS: int64(s.RetryIn / time.Millisecond), Final: s.Final}
		if s.Err != nil {
			e.Message = s.Err.Error()
		}
		if closed, ok := errors.AsType[*client.ClosedError](s.Err); ok {
			e.Code = string(closed.Reason)
		}
		l.printEvent(e)
		l.mu.Lock()
		l.reason = s.Err
		l.mu.Unlock()
	}
}

// received prints a message, and ends the command after --count of them.
func (l *liveClient) received(m client.Message) {
	e := event{Type: "message", Channel: m.Channel, ID: &m.ID, Data: m.Data, By: m.By}
	if c := m.Changes; c != nil {
		e.Cleared, e.Gone, e.Del, e.Set = c.Cleared, c.Gone, c.Deleted, c.Set
		e.Until, e.Away, e.Back = millisOf(c.Until), millisOf(c.Away), c.Back
	}
	l.order.RLock()
	defer l.order.RUnlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flags.count > 0 && l.messages >= l.flags.count {
		return
	}
	l.printEvent(e)
	if l.messages++; l.messages == l.flags.count {
		l.stop()
	}
}

// arrived prints an event of a channel.
func (l *liveClient) arrived(e event) {
	l.order.RLock()
	defer l.order.RUnlock()
	l.printEvent(e)
}

// printEvent prints a line, and ends the command if nothing reads it any more.
func (l *liveClient) printEvent(e event) {
	l.screen.Value(e, nil)
	if l.screen.Err() != nil {
		l.stop()
	}
}

func millisOf(times map[string]time.Time) map[string]int64 {
	var ms map[string]int64
	for name, at := range times {
		if ms == nil {
			ms = map[string]int64{}
		}
		ms[name] = at.UnixMilli()
	}
	return ms
}

func fieldsOf(fields map[string]client.Field) map[string]field {
	list := make(map[string]field, len(fields))
	for name, f := range fields {
		one := field{ID: f.ID, Value: f.Value, Away: f.Away}
		if !f.Until.IsZero() {
			one.Until = f.Until.UnixMilli()
		}
		list[name] = one
	}
	return list
}

// refusal returns the event for the error of a command.
func refusal(ref wire.Ref, err error) event {
	e := event{Type: "error", Ref: ref, Code: string(codeOf(exitCode(err))), Message: err.Error()}
	if errors.Is(err, client.ErrUnknownOutcome) {
		e.Code = "unknown_outcome"
	}
	if refused, ok := errors.AsType[*client.Error](err); ok {
		e.Code, e.Message, e.AfterMS = string(refused.Code), refused.Message, refused.After.Milliseconds()
	}
	if detailed, ok := errors.AsType[*client.DetailedError](err); ok {
		e.Data = detailed.Data
	}
	if refused, ok := errors.AsType[*client.Refusal](err); ok {
		current := map[string]*field{}
		for name, f := range refused.Fields {
			if current[name] = nil; f != nil {
				one := fieldsOf(map[string]client.Field{name: *f})[name]
				current[name] = &one
			}
		}
		e.Fields = current
	}
	return e
}
