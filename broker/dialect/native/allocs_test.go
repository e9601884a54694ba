package native

import (
	"bytes"
	"testing"

	"switchboard/broker/dialect"
	"switchboard/internal/allocs"
	"switchboard/internal/wire"
)

func hot() []allocs.Case {
	connect := []byte(`{"type":"connect","ref":1,"client":"phone","instance":"app","attempt":3,"after":735325130218600}`)
	subscribe := []byte(`{"type":"subscribe","ref":2,"channel":"news","after":735325130218600}`)
	ack := []byte(`{"type":"ack","id":735325130218600}`)
	change := []byte(`{"type":"publish","channel":"room:7","set":{"p/1/pos":{"x":123456,"y":654321}}}`)
	data := []byte(`{"type":"chat","from":"alice","text":"a message of an ordinary size, about ninety bytes"}`)
	id, queued := int64(735325130218600), 0
	limits := wire.Limits{Message: 65536, Channels: 128, MessageRate: 500, ByteRate: 2 << 20, RequestRate: 10, Waiting: 64, WaitingBytes: 128 << 10}
	connected := wire.Event{Type: wire.TypeConnected, Ref: wire.RefOf(1), Client: "phone", Server: "b1-7f3a", Ping: 25, Queued: &queued, ID: &id, Limits: &limits}
	message := wire.Event{Type: wire.TypeMessage, ID: &id, Data: data}
	d := New(0)
	buf := make([]byte, 0, 1<<10)
	sixteen := make([]*dialect.Message, 16)
	for i := range sixteen {
		sixteen[i] = d.Message("news", id, data)
	}
	decode := func(raw []byte) func() { return func() { d.lines.Decode(raw, discard{}) } }
	return []allocs.Case{
		allocs.Of("decode connect", 3, decode(connect)),     // client, instance, after
		allocs.Of("decode subscribe", 2, decode(subscribe)), // channel, after
		allocs.Of("decode ack", 0, decode(ack)),
		allocs.Of("decode a change of a field", 5, decode(change)), // channel, Change, and the list, the name and the value of set
		allocs.Of("encode connected", 0, func() { d.sockets.AppendEvent(buf, connected) }),
		allocs.Of("encode a message of the client queue", 0, func() { d.sockets.AppendEvent(buf, message) }),
		allocs.Of("make a message of a channel", 1, func() { d.Message("news", id, data) }),
		allocs.Of("batch of one", 0, func() { b := dialect.Batch{Messages: sixteen[:1]}; use(b.Bytes(&lineForm), b.Bytes(&socketForm)) }),
		// For each framing, the joined bytes and an element of Batch.joined.
		allocs.Of("batch of sixteen", 4, func() { b := dialect.Batch{Messages: sixteen}; use(b.Bytes(&lineForm), b.Bytes(&socketForm)) }),
	}
}

// discard is a Receiver that does nothing.
type discard struct{}

func (discard) Receive(wire.Request, int)            {}
func (discard) Malformed(wire.Ref, int, error, bool) {}

var used bytes.Buffer

// use keeps the compiler from removing the calls that returned the views.
func use(views ...[]byte) {
	used.Reset()
	for _, v := range views {
		used.Write(v)
	}
}

func TestAllocs(t *testing.T)   { allocs.Test(t, hot()) }
func BenchmarkHot(b *testing.B) { allocs.Bench(b, hot()) }
