package wire

import (
	"bytes"
	"testing"

	"switchboard/internal/allocs"
)

func hot() []allocs.Case {
	connect := []byte(`{"type":"connect","ref":1,"client":"phone","instance":"app","attempt":3,"after":735325130218600}`)
	subscribe := []byte(`{"type":"subscribe","ref":2,"channel":"news","after":735325130218600}`)
	ack := []byte(`{"type":"ack","id":735325130218600}`)
	data := []byte(`{"type":"chat","from":"alice","text":"a message of an ordinary size, about ninety bytes"}`)
	id, queued := int64(735325130218600), 0
	connected := Event{Type: TypeConnected, Ref: RefOf(1), Client: "phone", Server: "b1-7f3a", Ping: 25, Queued: &queued, ID: &id}
	frame := EncodeMessage("news", id, data)
	sixteen := make([]Frame, 16)
	for i := range sixteen {
		sixteen[i] = frame
	}
	decode := func(raw []byte) func() {
		return func() {
			if _, err := DecodeRequest(raw); err != nil {
				panic(err)
			}
		}
	}
	return []allocs.Case{
		allocs.Of("decode connect", 3, decode(connect)),     // client, instance, after
		allocs.Of("decode subscribe", 2, decode(subscribe)), // channel, after
		allocs.Of("decode ack", 0, decode(ack)),
		allocs.Of("encode connected", 1, func() { connected.Encode() }),
		allocs.Of("encode message", 1, func() { EncodeMessage("news", id, data) }),
		allocs.Of("compact payload", 1, func() { _, _ = CompactData(data, 1<<16) }),
		allocs.Of("batch of one", 0, func() { b := Batch{Frames: sixteen[:1]}; sinkOf(b.Line(), b.WebSocket()) }),
		allocs.Of("batch of sixteen", 2, func() { b := Batch{Frames: sixteen}; sinkOf(b.Line(), b.WebSocket()) }), // one for each framing
	}
}

var sink bytes.Buffer

func sinkOf(views ...[]byte) {
	sink.Reset()
	for _, v := range views {
		sink.Write(v)
	}
}

func TestAllocs(t *testing.T)   { allocs.Test(t, hot()) }
func BenchmarkHot(b *testing.B) { allocs.Bench(b, hot()) }
