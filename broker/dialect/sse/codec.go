package sse

import (
	"strconv"
	"time"

	"switchboard/broker/dialect"
	"switchboard/broker/dialect/native"
	"switchboard/internal/wire"
)

// Names of events that differ from their types.
const (
	nameRefused = "refused" // of an error, because EventSource has an error event of its own
	nameMessage = ""        // EventSource calls it "message"
)

// nameOf returns the name of an event of a type.
func nameOf(typ string) string {
	switch typ {
	case wire.TypeMessage:
		return nameMessage
	case wire.TypeError:
		return nameRefused
	}
	return typ
}

// Liveness implements dialect.Codec. The client sends nothing, so its silence means nothing.
func (c *codec) Liveness() dialect.Liveness { return dialect.Liveness{Ping: c.d.ping} }

// AppendPing implements dialect.Codec. It appends a comment, or an id alone if a position has moved
// without an event. EventSource keeps such an id. Otherwise a client would resume from an old
// position of a channel in which only the state changes, and receive a gap.
func (c *codec) AppendPing(dst []byte) []byte {
	if c.start() != nil {
		return dst
	}
	for ch := range c.channels() {
		if ch.moved {
			return append(c.appendIDField(dst, false), '\n')
		}
	}
	return append(dst, ":\n\n"...)
}

// Cut implements dialect.Codec. It ignores all bytes after the request.
func (c *codec) Cut(buf []byte, _ int) (dialect.Piece, error) {
	return dialect.Piece{N: len(buf)}, nil
}

// Skip implements dialect.Codec.
func (c *codec) Skip(buf []byte, _ int64) (n int, more int64) { return len(buf), 0 }

// Ref implements dialect.Codec. Cut finds no units.
func (c *codec) Ref([]byte) wire.Ref { return wire.Ref{} }

// Decode implements dialect.Codec. Cut finds no units.
func (c *codec) Decode([]byte, dialect.Receiver) {}

// AppendEvent implements dialect.Codec. The connection may break after any event. So the id of an
// event must not include the position of a later event.
func (c *codec) AppendEvent(dst []byte, e wire.Event) []byte {
	ref := e.Ref
	e.Ref = wire.Ref{} // the client gave none
	switch e.Type {
	case wire.TypeConnected:
		return c.appendConnected(dst, &e)
	case wire.TypeError:
		return c.appendError(dst, &e, ref)
	case wire.TypeSubscribed:
		return c.appendSubscribed(dst, &e)
	case wire.TypeMessage:
		c.inbox = *e.ID
	case wire.TypeGap:
		c.skipGap(e.Channel, *e.After, *e.ID)
	}
	return c.appendEvent(dst, &e)
}

// appendConnected appends the event that begins a stream. If the client resumes, it keeps its
// position on $all, because the missed messages or a gap follow.
func (c *codec) appendConnected(dst []byte, e *wire.Event) []byte {
	if c.client != e.Client {
		c.inbox = 0 // another queue, with other ids
	}
	e.Limits = nil      // the client sends no messages
	c.client = e.Client // also if it is the same, in the session's memory
	x := c.ensureExtra()
	x.secret, x.since = e.Secret, uint32(time.Now().Unix())
	if x.start != nil && !x.start.fromID && e.Secret == x.start.secret {
		x.secret = "" // the client sends it itself
	}
	if c.all < 0 {
		c.all = *e.ID
	}
	dst = c.appendHead(dst)
	dst = appendRetry(dst, c.d.retry())
	return c.appendEvent(dst, e)
}

// appendError appends an error. The error of a subscription gets the name of the channel. An error
// before connected is kept for AppendClosing, which answers with its status.
func (c *codec) appendError(dst []byte, e *wire.Event, ref wire.Ref) []byte {
	switch s := c.start(); {
	case s != nil:
		s.refusal = &wire.Error{Code: wire.ErrorCode(e.Code), Message: e.Message}
		return dst
	case ref.Set: // a subscription's: the channel's index plus one
		i := int64(1)
		for ch := range c.channels() {
			if i == ref.Value {
				e.Channel = ch.name
			}
			i++
		}
	}
	return c.appendEvent(dst, e)
}

// appendSubscribed appends the answer to a subscription. If the store does not know the client's
// position any more, a gap follows. Clients of other dialects see that by comparing ids, but the
// ids of a stream are opaque.
func (c *codec) appendSubscribed(dst []byte, e *wire.Event) []byte {
	ch := c.channel(e.Channel)
	if ch == nil || e.ID == nil {
		return c.appendEvent(dst, e)
	}
	ch.name = e.Channel // the same name, in the hub's memory
	if before := ch.after; before >= 0 && e.Recovered != nil && !*e.Recovered && before != *e.ID {
		dst = c.appendEvent(dst, e)
		ch.after = *e.ID
		return c.appendEvent(dst, &wire.Event{Type: wire.TypeGap, Channel: e.Channel, After: &before, ID: e.ID})
	}
	ch.after = *e.ID
	return c.appendEvent(dst, e)
}

func (c *codec) channel(name string) *channel {
	for ch := range c.channels() {
		if ch.name == name {
			return ch
		}
	}
	return nil
}

// skipGap moves the position in a queue past lost messages. If id is below after, the store has
// forgotten messages that the client has seen.
func (c *codec) skipGap(channel string, after, id int64) {
	position := c.position(channel)
	switch {
	case position == nil:
	case id < after && channel != "":
		*position = id
	default:
		*position = max(*position, id)
	}
}

// position returns a pointer to the position in a channel, or in the client queue if channel is "".
// It returns nil for a channel that the stream does not have.
func (c *codec) position(channel string) *int64 {
	switch channel {
	case "":
		return &c.inbox
	case wire.AllChannel:
		return &c.all
	}
	if ch := c.channel(channel); ch != nil {
		return &ch.after
	}
	return nil
}

// AppendMessage implements dialect.Codec.
func (c *codec) AppendMessage(dst []byte, m *dialect.Message) []byte {
	name := nameMessage
	switch e := m.Event; {
	case m.IsEmpty():
		if ch := c.channel(m.Channel); ch != nil {
			ch.after, ch.moved = m.ID, true
		}
		return dst
	case e == nil:
		if position := c.position(m.Channel); position != nil && m.Channel != "" {
			*position = m.ID
		}
	case e.Type == wire.TypeGap:
		// A gap event takes the place of a message in the channel, and has an id like a message.
		c.skipGap(e.Channel, *e.After, max(*e.ID, m.ID))
		name = wire.TypeGap
	default:
		name = nameOf(e.Type)
	}
	dst = c.appendFields(dst, name, false)
	dst = append(dst, native.JSON(m)...)
	return append(dst, "\n\n"...)
}

// appendEvent appends e, with the positions as they are.
func (c *codec) appendEvent(dst []byte, e *wire.Event) []byte {
	dst = c.appendFields(dst, nameOf(e.Type), false)
	dst = native.AppendEvent(dst, e)
	return append(dst, "\n\n"...)
}

// appendFields appends the fields of an event up to the value of data.
func (c *codec) appendFields(dst []byte, name string, final bool) []byte {
	dst = c.appendHead(dst)
	if c.client != "" {
		dst = c.appendIDField(dst, final)
	}
	if name != nameMessage {
		dst = append(dst, "event:"...)
		dst = append(dst, name...)
		dst = append(dst, '\n')
	}
	return append(dst, "data:"...)
}

// appendIDField appends the id of an event.
func (c *codec) appendIDField(dst []byte, final bool) []byte {
	dst = append(dst, "id:"...)
	dst = c.appendID(dst, final)
	return append(dst, '\n')
}

func appendRetry(dst []byte, ms int64) []byte {
	dst = append(dst, "retry:"...)
	dst = strconv.AppendInt(dst, ms, 10)
	return append(dst, '\n')
}

// AppendClosing implements dialect.Codec. EventSource connects again after any end of a stream. So
// a client that should not reconnect gets a final id. The answer to a request with a final id is
// 204, which ends EventSource. Before connected, such a client gets the status of an error instead.
func (c *codec) AppendClosing(dst []byte, reason wire.CloseReason, detail string, afterMS int64) (out []byte, status int) {
	reconnect := reason.Reconnect()
	if reason == wire.CloseSuperseded && c.mayReconnect() {
		reconnect, afterMS = true, max(afterMS, int64(c.extra.superseded)*supersededMS)
	}
	if s := c.start(); s != nil && (!reconnect || reason != wire.CloseSuperseded) {
		if refusal := s.refusalOf(reason, detail); refusal != nil {
			return c.appendRefusal(dst, refusal), 0
		}
		if !reconnect { // connect was in the request, so it is the broker that was too slow
			reason, reconnect, afterMS = wire.CloseOverloaded, true, max(afterMS, slowConnectMS)
		}
	}
	dst = c.appendHead(dst)
	if afterMS > 0 {
		dst = appendRetry(dst, afterMS)
	}
	e := wire.Closing(reason, detail, afterMS)
	e.Reconnect = &reconnect
	dst = c.appendFields(dst, wire.TypeClosing, !reconnect)
	dst = native.AppendEvent(dst, &e)
	return append(dst, "\n\n"...), 0
}

// A client that loses its connection connects again at once. If the store executes the old connect
// after the new one, the old one supersedes the connection that is in use. So a superseded client
// may reconnect, but at most maxSuperseded times in a row. Without this limit, two pages with the
// same client id would supersede each other forever. A stream that lasts settledSeconds resets the
// count.
const (
	maxSuperseded  = 2
	supersededMS   = 1000 // the retry delay after the first time
	settledSeconds = 60
)

// mayReconnect counts that the client is superseded, and reports whether it may reconnect.
func (c *codec) mayReconnect() bool {
	x := c.ensureExtra()
	x.superseded, x.since = c.supersededInARow()+1, 0
	return x.superseded <= maxSuperseded
}

// supersededInARow returns how often the client was superseded since the last stream that lasted.
func (c *codec) supersededInARow() uint8 {
	x := c.extra
	if x == nil || x.superseded == 0 {
		return 0
	}
	if x.since != 0 && uint32(time.Now().Unix())-x.since >= settledSeconds {
		x.superseded = 0
	}
	return x.superseded
}

// slowConnectMS is the retry delay of a client whose connect took the broker too long.
const slowConnectMS = 2000
