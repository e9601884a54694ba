package transport

import (
	"net/url"
	"strings"
	"testing"

	"github.com/gobwas/ws"

	"switchboard/broker/dialect"
	"switchboard/broker/dialect/sse"
	"switchboard/broker/loop"
	"switchboard/internal/allocs"
	"switchboard/internal/dialecttest"
	"switchboard/internal/wire"
)

func hot() []allocs.Case {
	d := dialecttest.All()[0].New(0)
	native := Dialects{Stream: func(byte) dialect.Dialect { return d }, WebSocket: d, Framing: dialect.Text}
	p := NewPoller(1, 0, Limits{Message: 1 << 10, Page: func(Page) string { return "" }},
		native, func(*loop.Loop, Conn, []wire.Request) Receiver { return discard{} }, gnetLogger{}.Logger)
	read := func(begin string, message []byte) func() {
		conn := &memoryConn{}
		c := &pollerConn{loop: p.loops[0], conn: conn}
		conn.in.WriteString(begin)
		c.read()
		return func() {
			conn.in.Write(message)
			c.read()
		}
	}
	write := func(s state, f dialect.Framing, do func(*pollerConn)) func() {
		o, err := d.Open(dialect.Hello{Framing: f})
		if err != nil {
			panic(err)
		}
		conn := &memoryConn{}
		c := &pollerConn{loop: p.loops[0], conn: conn, state: s, receiver: discard{}, encoding: o.Encoding}
		return func() {
			do(c)
			conn.out.Reset()
		}
	}
	stream, err := sse.New(0).Open(dialect.Hello{URL: &url.URL{RawQuery: "channel=news&client=phone"}})
	if err != nil {
		panic(err)
	}
	stream.Encoding.AppendEvent(nil, wire.Event{Type: wire.TypeConnected, Client: "phone", ID: new(int64)})
	writeStream := func(do func(*pollerConn)) func() {
		conn := &memoryConn{}
		c := &pollerConn{loop: p.loops[0], conn: conn, state: streaming, receiver: discard{}, encoding: stream.Encoding}
		return func() {
			do(c)
			conn.out.Reset()
		}
	}
	data := []byte(`"` + strings.Repeat("x", 200) + `"`)
	batch, id := &dialect.Batch{Messages: []*dialect.Message{d.Message("news", 1, data)}}, int64(1)
	shared := func(c *pollerConn) { c.Write(batch) }
	own := func(c *pollerConn) { c.Send(wire.Event{Type: wire.TypeMessage, ID: &id, Data: data}) }
	corked := func(c *pollerConn) { c.Cork(); own(c); shared(c); c.Uncork() }
	text := `{"type":"ack","id":7}` + strings.Repeat(" ", 200)
	return []allocs.Case{
		allocs.Of("read a line", 0, read("\n", []byte(text+"\n"))),
		allocs.Of("read a frame", 0, read(upgradeRequest("/ws", ""), clientFrame(true, ws.OpText, text))),
		allocs.Of("write a line", 0, write(streaming, dialect.Stream, shared)),
		allocs.Of("write a frame", 0, write(framed, dialect.Text, shared)),
		allocs.Of("write an event", 0, writeStream(shared)),
		allocs.Of("send an event", 0, writeStream(own)),
		allocs.Of("send a line", 0, write(streaming, dialect.Stream, own)),
		allocs.Of("send a frame", 0, write(framed, dialect.Text, own)),
		allocs.Of("send and write in one call", 0, write(framed, dialect.Text, corked)),
	}
}

func TestAllocs(t *testing.T)   { allocs.Test(t, hot()) }
func BenchmarkHot(b *testing.B) { allocs.Bench(b, hot()) }
