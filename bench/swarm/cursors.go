package swarm

import (
	"bytes"
	"fmt"
)

// A Sender is a [Dialect] whose clients send values to the other subscribers of their channel, as
// cursors do.
type Sender interface {
	Dialect
	// SendValue sends a numbered payload. The connection is ready.
	SendValue(c Connection, payload []byte) error
}

// Send sends a numbered payload from subscriber i, which must be ready. The dialect must be a
// [Sender].
func (s *Swarm) Send(i int, payload []byte) error {
	if err := s.dialect.(Sender).SendValue(Connection{s, i}, payload); err != nil {
		return fmt.Errorf("%s: %w", s.describe(i), err)
	}
	return nil
}

// SwitchboardCursors is [Switchboard] with clients that send values. With State, each client has a
// field of its own. Otherwise the values are here values, which are never stored.
type SwitchboardCursors struct {
	Switchboard
	State bool
}

// NewSwitchboardCursors returns the dialect for raw TCP.
func NewSwitchboardCursors(state bool) *SwitchboardCursors {
	d := &SwitchboardCursors{State: state, Switchboard: Switchboard{Presence: !state}}
	if state {
		d.Field = "cursor/"
	}
	return d
}

// SendValue implements [Sender].
func (d *SwitchboardCursors) SendValue(c Connection, payload []byte) error {
	if d.State {
		return c.Send(fmt.Appendf(nil, `{"type":"publish","channel":%q,"set":{"%s%d":%s}}`+"\n", c.Channel(), d.Field, c.i, payload))
	}
	return c.Send(fmt.Appendf(nil, `{"type":"here","channel":%q,"data":%s}`+"\n", c.Channel(), payload))
}

// Handle implements [Dialect].
func (d *SwitchboardCursors) Handle(c Connection, body []byte) error {
	if value, ok := findPayload(body); ok {
		c.Deliver(value, 0)
		return nil
	}
	for _, other := range otherEvents {
		if bytes.HasPrefix(body, other) {
			return nil
		}
	}
	return d.event(c, body)
}

// otherEvents are the starts of events that [SwitchboardCursors] ignores.
var otherEvents = [][]byte{[]byte(`{"type":"join"`), []byte(`{"type":"leave"`), []byte(`{"type":"presence"`), []byte(`{"type":"published"`)}

// CentrifugeCursors is the protocol of the centrifuge library with clients that send values. With
// Map, each client has an entry of the channel's map. Otherwise the values are messages.
type CentrifugeCursors struct {
	CentrifugeMap
	Map bool

	commands uint32 // ids of sent commands
}

// Subscribe implements [Dialect].
func (d *CentrifugeCursors) Subscribe(c Connection) error {
	if d.Map {
		return d.CentrifugeMap.Subscribe(c)
	}
	return d.Centrifuge.Subscribe(c)
}

// SendValue implements [Sender].
func (d *CentrifugeCursors) SendValue(c Connection, payload []byte) error {
	d.commands++
	entry := ""
	if d.Map {
		entry = fmt.Sprintf(`,"type":1,"key":"cursor/%d"`, c.i)
	}
	return c.SendText(fmt.Appendf(nil, `{"id":%d,"publish":{"channel":%q%s,"data":%s}}`, d.commands+firstCommand, c.Channel(), entry, payload))
}

// firstCommand is above the ids of connect and subscribe.
const firstCommand = 10

// Handle implements [Dialect].
func (d *CentrifugeCursors) Handle(c Connection, body []byte) error {
	for line := range bytes.SplitSeq(body, []byte("\n")) {
		if value, ok := findPayload(line); ok {
			c.Deliver(value, 0)
		} else if len(line) > 0 && !isPublished(line) {
			if err := d.reply(c, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// isPublished reports whether a reply confirms a publish.
func isPublished(line []byte) bool {
	id, rest, ok := parseNumber(line, []byte(`{"id":`))
	return ok && id > firstCommand && bytes.HasPrefix(rest, []byte(`,"publish":`))
}

// findPayload returns the first numbered payload in a message.
func findPayload(body []byte) (payload []byte, ok bool) {
	at := bytes.Index(body, numberHead)
	if at < 0 || len(body) < at+PayloadSize {
		return nil, false
	}
	payload = body[at : at+PayloadSize]
	_, _, ok = parsePayload(payload, PayloadSize)
	return payload, ok
}
