// Package native is the dialect of Switchboard itself, described in docs/protocol.md: one JSON
// object is one message, a text frame of WebSocket or a line of raw TCP.
package native

import (
	"bytes"
	"time"

	"switchboard/broker/dialect"
	"switchboard/internal/wire"
)

// Dialect implements dialect.Dialect and dialect.Maker. All its connections share two encodings.
type Dialect struct {
	ping           time.Duration
	lines, sockets dialect.Encoding
}

// New returns the dialect. A connection that is silent for ping is asked for a sign of life, and
// closed after the same time again.
func New(ping time.Duration) *Dialect {
	d := &Dialect{ping: ping}
	d.lines = dialect.Encoding{Codec: codec{d, dialect.Stream}, Framing: dialect.Stream, Form: &lines}
	d.sockets = dialect.Encoding{Codec: codec{d, dialect.Text}, Framing: dialect.Text, Form: &sockets}
	return d
}

// The forms of messages: a message is made with both.
var (
	lines   = dialect.Form{View: func(m *dialect.Message) []byte { return m.Prepared.Line() }}
	sockets = dialect.Form{View: func(m *dialect.Message) []byte { return m.Prepared.WebSocket() }}
)

// Open implements dialect.Dialect. The query of a WebSocket URL may stand for the connect message.
func (d *Dialect) Open(h dialect.Hello) (dialect.Opening, error) {
	if h.Framing == dialect.Stream {
		return dialect.Opening{Encoding: &d.lines}, nil
	}
	o := dialect.Opening{Encoding: &d.sockets}
	if h.URL != nil && h.URL.RawQuery != "" {
		q := h.URL.Query()
		connect := wire.Request{
			Type: wire.TypeConnect, Token: q.Get("token"), Client: q.Get("client"), Secret: q.Get("secret"),
		}
		if connect.Token != "" || connect.Client != "" || connect.Secret != "" {
			o.Requests = []wire.Request{connect}
		}
	}
	return o, nil
}

// codec implements dialect.Codec for all connections in one framing.
type codec struct {
	d       *Dialect
	framing dialect.Framing
}

// Liveness implements dialect.Codec.
func (c codec) Liveness() dialect.Liveness {
	return dialect.Liveness{Ping: c.d.ping, Idle: 2 * c.d.ping}
}

// AppendPing implements dialect.Codec.
func (c codec) AppendPing(dst []byte) []byte { return append(dst, pingLine...) }

const pingLine = `{"type":"ping"}` + "\n"

// Cut implements dialect.Codec: a unit is a line without the white space around it.
func (c codec) Cut(buf []byte, limit int) (dialect.Piece, error) {
	end := bytes.IndexByte(buf, '\n')
	switch {
	case end < 0 && len(buf) > limit:
		return dialect.Piece{N: len(buf), TooLarge: true, Left: toLineEnd}, nil
	case end < 0:
		return dialect.Piece{}, nil
	case end > limit:
		return dialect.Piece{N: end + 1, TooLarge: true}, nil
	}
	p := dialect.Piece{N: end + 1}
	if line := bytes.TrimSpace(buf[:end]); len(line) > 0 {
		p.Unit = line
	}
	return p, nil
}

// toLineEnd stands for a number of bytes that is not known: those up to the end of the line.
const toLineEnd = 1

// Skip implements dialect.Codec.
func (c codec) Skip(buf []byte, _ int64) (n int, left int64) {
	if end := bytes.IndexByte(buf, '\n'); end >= 0 {
		return end + 1, 0
	}
	return len(buf), toLineEnd
}

// Decode implements dialect.Codec.
func (c codec) Decode(unit []byte, r dialect.Receiver) {
	req, err := DecodeRequest(unit)
	if err == nil {
		r.Receive(req, len(unit))
		return
	}
	ref, object := salvage(unit)
	r.Malformed(ref, len(unit), err, !object)
}

// AppendMessage implements dialect.Codec. Connections of this dialect have a Form, so messages of
// channels do not come here.
func (c codec) AppendMessage(dst []byte, m *dialect.Message) []byte {
	if c.framing == dialect.Stream {
		return append(dst, m.Prepared.Line()...)
	}
	return append(dst, m.Prepared.WebSocket()...)
}

// AppendEvent implements dialect.Codec.
func (c codec) AppendEvent(dst []byte, e wire.Event) []byte {
	if c.framing == dialect.Stream {
		return append(appendEvent(dst, &e), '\n')
	}
	start := len(dst)
	return dialect.PutHeader(appendEvent(dialect.ReserveHeader(dst), &e), start, dialect.Text)
}

// Last implements dialect.Codec.
func (c codec) AppendClosing(dst []byte, reason wire.CloseReason, detail string, afterMS int64) (out []byte, status int) {
	reconnect := reason.Reconnect()
	return c.AppendEvent(dst, wire.Event{
		Type: wire.TypeClosing, Code: string(reason), Message: detail, Reconnect: &reconnect, AfterMS: afterMS,
	}), reason.Status()
}
