package dialecttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"switchboard/broker/dialect"
	"switchboard/internal/wire"
)

// MessagePack is a dialect whose units are MessagePack maps with the fields of the JSON protocol. A
// unit is a netstring ("5:hello,") on raw TCP and a binary frame on WebSocket. It differs from the
// native dialect in everything that a dialect decides:
//
//   - A unit starts with its length, and is not UTF-8.
//   - A message has other bytes on raw TCP than on WebSocket.
//   - Each connection has a codec of its own.
//   - Messages on WebSocket are encoded for each connection.
type MessagePack struct{ Ping time.Duration }

// Open implements dialect.Dialect. The query of a URL may have the fields of `connect`.
func (d MessagePack) Open(h dialect.Hello) (dialect.Opening, error) {
	c := &codec{ping: d.Ping, framing: h.Framing}
	o := dialect.Opening{Encoding: &dialect.Encoding{Codec: c, Framing: h.Framing}}
	switch h.Framing {
	case dialect.Stream:
		o.Encoding.Form = &streamForm
	case dialect.Text:
		return dialect.Opening{}, errors.New("MessagePack needs binary frames")
	case dialect.Binary: // without a Form, AppendMessage encodes for each connection
	}
	if h.URL != nil && h.URL.RawQuery != "" {
		q := h.URL.Query()
		o.Requests = []wire.Request{{
			Type: wire.TypeConnect, Token: q.Get("token"), Client: q.Get("client"), Secret: q.Get("secret"),
		}}
	}
	return o, nil
}

// Message implements dialect.Maker. It prepares no bytes, so every form encodes on its first use.
func (d MessagePack) Message(channel string, id int64, data []byte) *dialect.Message {
	return &dialect.Message{Channel: channel, ID: id, Data: bytes.Clone(data)}
}

// Authored implements dialect.Maker.
func (d MessagePack) Authored(channel string, id int64, data []byte, by string) *dialect.Message {
	m := d.Message(channel, id, data)
	m.Envelope = &dialect.Envelope{By: by}
	return m
}

// Part implements dialect.Maker.
func (d MessagePack) Part(channel string, id int64, data []byte, changes *wire.StateEvent) *dialect.Message {
	return &dialect.Message{Channel: channel, ID: id, Data: data, State: changes}
}

// Event implements dialect.Maker.
func (d MessagePack) Event(e wire.Event) *dialect.Message { return &dialect.Message{Event: &e} }

// streamForm is the form of all connections of raw TCP.
var streamForm = dialect.Form{Append: func(dst []byte, m *dialect.Message) []byte {
	return appendNetstring(dst, pack(EventOf(m)))
}}

// EventOf returns a message as an event.
func EventOf(m *dialect.Message) wire.Event {
	if m.Event != nil {
		return *m.Event
	}
	e := wire.Event{Type: wire.TypeMessage, Channel: m.Channel, ID: &m.ID, Data: m.Data, StateEvent: m.State}
	if m.Envelope != nil && m.Envelope.By != "" {
		e.StateEvent = &wire.StateEvent{By: m.Envelope.By}
	}
	return e
}

// codec implements dialect.Codec for one connection.
type codec struct {
	ping    time.Duration
	framing dialect.Framing
}

// Ref implements dialect.Codec. It finds no reference: the members of a map are in any order.
func (c *codec) Ref([]byte) wire.Ref { return wire.Ref{} }

// Decode implements dialect.Codec.
func (c *codec) Decode(unit []byte, r dialect.Receiver) {
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
func (c *codec) AppendEvent(dst []byte, e wire.Event) []byte {
	if c.framing == dialect.Stream {
		return appendNetstring(dst, pack(e))
	}
	start := len(dst)
	return dialect.PutHeader(append(dialect.ReserveHeader(dst), pack(e)...), start, c.framing)
}

// AppendMessage implements dialect.Codec.
func (c *codec) AppendMessage(dst []byte, m *dialect.Message) []byte {
	if m.IsEmpty() {
		return dst
	}
	return c.AppendEvent(dst, EventOf(m))
}

// Liveness implements dialect.Codec.
func (c *codec) Liveness() dialect.Liveness {
	return dialect.Liveness{Ping: c.ping, Idle: 2 * c.ping}
}

// AppendPing implements dialect.Codec.
func (c *codec) AppendPing(dst []byte) []byte {
	return c.AppendEvent(dst, wire.Event{Type: wire.TypePing})
}

// AppendClosing implements dialect.Codec.
func (c *codec) AppendClosing(dst []byte, reason wire.CloseReason, detail string, afterMS int64) ([]byte, int) {
	return c.AppendEvent(dst, wire.Closing(reason, detail, afterMS)), reason.Status()
}

// pack returns an event as MessagePack. It panics on payloads that are not JSON; the broker accepts
// none.
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

// numbers replaces each json.Number in a value with an int64 if it is one, else with a float64.
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

// unpack returns a MessagePack value as JSON.
func unpack(unit []byte) ([]byte, error) {
	d := msgpack.NewDecoder(bytes.NewReader(unit))
	v, err := d.DecodeInterface()
	if err != nil {
		return nil, err
	}
	if rest := d.Buffered(); rest != nil {
		if _, err := d.PeekCode(); err == nil {
			return nil, errors.New("more than one value")
		}
	}
	return plainJSON(v)
}

// plainJSON is json.Marshal without the HTML escapes.
func plainJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}
