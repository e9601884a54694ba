// Package native is Switchboard's own dialect, which docs/protocol.md describes. One JSON object is
// one unit: a text frame on WebSocket, or a line on raw TCP.
package native

import (
	"bytes"
	"time"

	"switchboard/broker/dialect"
	"switchboard/internal/wire"
)

// Dialect implements dialect.Dialect and dialect.Maker. Its connections share two encodings.
type Dialect struct {
	ping           time.Duration // silence after which a connection is pinged
	lines, sockets dialect.Encoding
}

// New returns the dialect. The broker pings a connection after this much silence, and closes it
// after twice as much.
func New(ping time.Duration) *Dialect {
	d := &Dialect{ping: ping}
	d.lines = dialect.Encoding{Codec: codec{d, dialect.Stream}, Framing: dialect.Stream, Form: &lineForm}
	d.sockets = dialect.Encoding{Codec: codec{d, dialect.Text}, Framing: dialect.Text, Form: &socketForm}
	return d
}

// The forms of messages. Message.Prepared holds the bytes of both.
var (
	lineForm   = dialect.Form{View: func(m *dialect.Message) []byte { return m.Prepared.Line() }}
	socketForm = dialect.Form{View: func(m *dialect.Message) []byte { return m.Prepared.WebSocket() }}
)

// Open implements dialect.Dialect. The query of a WebSocket URL may have the fields of `connect`.
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

// codec implements dialect.Codec for all connections with one framing.
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

// Cut implements dialect.Codec. A unit is a line without the white space around it.
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

// toLineEnd is the Piece.Left of a line whose end has not arrived. How many bytes follow is not
// known, so any value but 0 would do.
const toLineEnd = 1

// Skip implements dialect.Codec.
func (c codec) Skip(buf []byte, _ int64) (n int, more int64) {
	if end := bytes.IndexByte(buf, '\n'); end >= 0 {
		return end + 1, 0
	}
	return len(buf), toLineEnd
}

// Ref implements dialect.Codec.
func (c codec) Ref(start []byte) wire.Ref { return refAtStart(start) }

// Decode implements dialect.Codec.
func (c codec) Decode(unit []byte, r dialect.Receiver) {
	req, err := DecodeRequest(unit)
	if err == nil {
		r.Receive(req, len(unit))
		return
	}
	ref, object := salvageRef(unit)
	r.Malformed(ref, len(unit), err, !object)
}

// AppendMessage implements dialect.Codec. It is never called, because the encodings have a Form.
func (c codec) AppendMessage(dst []byte, m *dialect.Message) []byte {
	if c.framing == dialect.Stream {
		return append(dst, m.Prepared.Line()...)
	}
	return append(dst, m.Prepared.WebSocket()...)
}

// AppendEvent implements dialect.Codec.
func (c codec) AppendEvent(dst []byte, e wire.Event) []byte {
	if c.framing == dialect.Stream {
		return append(AppendEvent(dst, &e), '\n')
	}
	start := len(dst)
	return dialect.PutHeader(AppendEvent(dialect.ReserveHeader(dst), &e), start, dialect.Text)
}

// AppendClosing implements dialect.Codec.
func (c codec) AppendClosing(dst []byte, reason wire.CloseReason, detail string, afterMS int64) (out []byte, status int) {
	return c.AppendEvent(dst, wire.Closing(reason, detail, afterMS)), reason.Status()
}
