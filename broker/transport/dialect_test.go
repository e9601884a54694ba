package transport

import (
	"testing"

	"switchboard/broker/dialect"
	"switchboard/broker/dialect/sse"
	"switchboard/internal/dialecttest"
	"switchboard/internal/wire"
)

// spoken is the dialect that services and peers speak. TestMain runs all tests with each dialect.
var spoken = dialecttest.All()[0]

// speakJSON makes a test use the native dialect, because it is about JSON or text frames.
func speakJSON(t testing.TB) { dialecttest.SpeakJSON(t, &spoken) }

// texts is a dialect whose units are any text, in the framing of spoken. Receive gets the unit as
// the type of a request.
type texts struct{ dialect.Dialect }

func (d texts) Open(h dialect.Hello) (dialect.Opening, error) {
	o, err := d.Dialect.Open(h)
	if err != nil {
		return o, err
	}
	s := *o.Encoding
	s.Codec = textCodec{s.Codec, s.Framing}
	if s.Form != nil && s.Form.View == nil {
		s.Form = &dialect.Form{Append: s.AppendMessage}
	}
	o.Encoding = &s
	return o, nil
}

// dialects returns texts in the framings of spoken.
func dialects() Dialects {
	d := texts{spoken.New(0)}
	return Dialects{Stream: func(byte) dialect.Dialect { return d }, WebSocket: d, Framing: spoken.Framing, Response: sse.New(0)}
}

type textCodec struct {
	dialect.Codec
	framing dialect.Framing
}

func (c textCodec) Decode(unit []byte, r dialect.Receiver) {
	r.Receive(wire.Request{Type: string(unit)}, len(unit))
}

func (c textCodec) AppendMessage(dst []byte, m *dialect.Message) []byte {
	if c.framing == dialect.Stream {
		return append(dst, spoken.Stream(m.Prepared.Payload())...)
	}
	start := len(dst)
	return dialect.PutHeader(append(dialect.ReserveHeader(dst), m.Prepared.Payload()...), start, c.framing)
}

// text returns a message of any text.
func text(s string) *dialect.Message {
	return &dialect.Message{Prepared: dialect.Prepare(append(dialect.ReserveHeader(nil), s...), '\n')}
}

// batchOf returns a batch of one text.
func batchOf(s string) *dialect.Batch { return &dialect.Batch{Messages: []*dialect.Message{text(s)}} }

// streamEncoding returns the encoding of a raw TCP connection.
func streamEncoding(d dialect.Dialect) *dialect.Encoding {
	o, err := d.Open(dialect.Hello{})
	if err != nil {
		panic(err)
	}
	return o.Encoding
}
