package dialecttest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"switchboard/broker/dialect"
	"switchboard/internal/wire"
)

// maxDigits is the most digits of a netstring's length.
const maxDigits = 9

// MessagePack is a dialect of MessagePack maps with the fields of the JSON protocol. On raw TCP each
// is a netstring ("5:hello,"), on WebSocket a binary frame. It differs from the native dialect in
// everything that a dialect decides: the length comes first, text is not UTF-8, a message has other
// bytes on TCP than in a frame, each connection has a codec of its own, and messages in frames are
// encoded for each connection.
type MessagePack struct{ Ping time.Duration }

// Open implements dialect.Dialect. The query of a URL may stand for the connect message.
func (d MessagePack) Open(h dialect.Hello) (dialect.Opening, error) {
	c := &netstrings{ping: d.Ping, framing: h.Framing}
	o := dialect.Opening{Encoding: &dialect.Encoding{Codec: c, Framing: h.Framing}}
	switch h.Framing {
	case dialect.Stream:
		o.Encoding.Form = &streamForm
	case dialect.Text:
		return dialect.Opening{}, errors.New("MessagePack needs binary frames")
	case dialect.Binary: // no Form: AppendMessage encodes for each connection
	}
	if h.URL != nil && h.URL.RawQuery != "" {
		q := h.URL.Query()
		o.Requests = []wire.Request{{
			Type: wire.TypeConnect, Token: q.Get("token"), Client: q.Get("client"), Secret: q.Get("secret"),
		}}
	}
	return o, nil
}

// Message implements dialect.Maker, as Event does: with nothing packed, every form encodes on first
// use.
func (d MessagePack) Message(channel string, id int64, data []byte) *dialect.Message {
	return &dialect.Message{Channel: channel, ID: id, Data: bytes.Clone(data)}
}

// Event implements dialect.Maker.
func (d MessagePack) Event(e wire.Event) *dialect.Message { return &dialect.Message{Event: &e} }

// streamForm is encoded once for all connections of raw TCP.
var streamForm = dialect.Form{Append: func(dst []byte, m *dialect.Message) []byte {
	return appendNetstring(dst, pack(EventOf(m)))
}}

// EventOf returns a message as an event.
func EventOf(m *dialect.Message) wire.Event {
	if m.Event != nil {
		return *m.Event
	}
	return wire.Event{Type: wire.TypeMessage, Channel: m.Channel, ID: &m.ID, Data: m.Data}
}

// netstrings is the codec of one connection.
type netstrings struct {
	ping    time.Duration
	framing dialect.Framing
}

// Cut implements dialect.Codec.
func (c *netstrings) Cut(buf []byte, limit int) (dialect.Piece, error) {
	colon := bytes.IndexByte(buf[:min(len(buf), maxDigits+1)], ':')
	if colon < 0 && len(buf) <= maxDigits {
		return dialect.Piece{}, nil
	}
	if colon < 0 {
		return dialect.Piece{}, errors.New("a netstring begins with its length")
	}
	n, err := strconv.ParseUint(string(buf[:colon]), 10, 32)
	if err != nil {
		return dialect.Piece{}, fmt.Errorf("netstring: %q is no length", buf[:colon])
	}
	whole := colon + 1 + int(n) + 1
	switch {
	case int(n) > limit && len(buf) < whole:
		return dialect.Piece{N: len(buf), TooLarge: true, Left: int64(whole - len(buf))}, nil
	case int(n) > limit:
		return dialect.Piece{N: whole, TooLarge: true}, nil
	case len(buf) < whole:
		return dialect.Piece{}, nil
	case buf[whole-1] != ',':
		return dialect.Piece{}, errors.New("a netstring ends with a comma")
	case n == 0:
		return dialect.Piece{N: whole}, nil
	}
	return dialect.Piece{Unit: buf[colon+1 : whole-1], N: whole}, nil
}

// Skip implements dialect.Codec.
func (c *netstrings) Skip(buf []byte, left int64) (n int, more int64) {
	n = int(min(left, int64(len(buf))))
	return n, left - int64(n)
}

// Decode implements dialect.Codec.
func (c *netstrings) Decode(unit []byte, r dialect.Receiver) {
	text, err := unpack(unit)
	if err != nil {
		r.Malformed(wire.Ref{}, len(unit), wire.Errorf(wire.BadRequest, "not MessagePack: %v", err), true)
		return
	}
	var req wire.Request
	if err := json.Unmarshal(text, &req); err != nil {
		var partial struct{ Ref wire.Ref }
		_ = json.Unmarshal(text, &partial)
		r.Malformed(partial.Ref, len(unit), wire.JSONError(err), text[0] != '{')
		return
	}
	switch {
	case req.Type == "":
		r.Malformed(req.Ref, len(unit), wire.Errorf(wire.BadRequest, "type: missing"), false)
	case req.After != nil && *req.After < 0:
		r.Malformed(req.Ref, len(unit), wire.Errorf(wire.BadRequest, "after: %d is below zero", *req.After), false)
	default:
		r.Receive(req, len(unit))
	}
}

// AppendEvent implements dialect.Codec.
func (c *netstrings) AppendEvent(dst []byte, e wire.Event) []byte {
	if c.framing == dialect.Stream {
		return appendNetstring(dst, pack(e))
	}
	start := len(dst)
	return dialect.PutHeader(append(dialect.ReserveHeader(dst), pack(e)...), start, c.framing)
}

// AppendMessage implements dialect.Codec.
func (c *netstrings) AppendMessage(dst []byte, m *dialect.Message) []byte {
	return c.AppendEvent(dst, EventOf(m))
}

// Liveness implements dialect.Codec.
func (c *netstrings) Liveness() dialect.Liveness {
	return dialect.Liveness{Ping: c.ping, Idle: 2 * c.ping}
}

// AppendPing implements dialect.Codec.
func (c *netstrings) AppendPing(dst []byte) []byte {
	return c.AppendEvent(dst, wire.Event{Type: wire.TypePing})
}

// Last implements dialect.Codec.
func (c *netstrings) AppendClosing(dst []byte, reason wire.CloseReason, detail string, afterMS int64) ([]byte, int) {
	reconnect := reason.Reconnect()
	return c.AppendEvent(dst, wire.Event{
		Type: wire.TypeClosing, Code: string(reason), Message: detail, Reconnect: &reconnect, AfterMS: afterMS,
	}), reason.Status()
}

// readNetstring returns the next netstring, or with an error what it has read.
func readNetstring(r *bufio.Reader) ([]byte, error) {
	head, err := r.ReadBytes(':')
	if err != nil {
		return head, err
	}
	n, err := strconv.Atoi(string(head[:len(head)-1]))
	if err != nil {
		return head, err
	}
	unit := make([]byte, n+1)
	if read, err := io.ReadFull(r, unit); err != nil {
		return unit[:read], err
	}
	if unit[n] != ',' {
		return unit, errors.New("a netstring ends with a comma")
	}
	return unit[:n], nil
}

func appendNetstring(dst, payload []byte) []byte {
	dst = append(strconv.AppendInt(dst, int64(len(payload)), 10), ':')
	return append(append(dst, payload...), ',')
}

// pack returns an event as MessagePack. It panics on payloads that are not JSON, which no broker
// accepts.
func pack(e wire.Event) []byte {
	text, err := plainJSON(e)
	if err != nil {
		panic(err)
	}
	return packJSON(text)
}

// packJSON returns a JSON text as MessagePack.
func packJSON(text []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(fmt.Errorf("%s: %w", text, err))
	}
	packed, err := msgpack.Marshal(numbers(v))
	if err != nil {
		panic(err)
	}
	return packed
}

// numbers replaces the numbers of a JSON value by integers where they are, which MessagePack keeps.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return v
}

// unpack returns one MessagePack value as JSON.
func unpack(unit []byte) ([]byte, error) {
	d := msgpack.NewDecoder(bytes.NewReader(unit))
	v, err := d.DecodeInterface()
	if err != nil {
		return nil, err
	}
	if rest := d.Buffered(); rest != nil {
		if _, err := d.PeekCode(); err == nil {
			return nil, errors.New("there is more than one value")
		}
	}
	return plainJSON(v)
}

// plainJSON is json.Marshal without escapes for HTML.
func plainJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}
