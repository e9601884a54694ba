package transport

import (
	"strings"
	"testing"

	"github.com/gobwas/ws"

	"switchboard/broker/loop"
	"switchboard/internal/allocs"
	"switchboard/internal/wire"
)

func hot() []allocs.Case {
	p := NewPoller(1, 0, Limits{Message: 1 << 10, Origin: func(_, _ string) bool { return true }},
		func(*loop.Loop, Conn, Hello) Receiver { return deaf{} }, gnetLogger{}.Logger)
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
	write := func(s state) func() {
		conn := &memoryConn{}
		c := &pollerConn{loop: p.loops[0], conn: conn, state: s, to: deaf{}}
		batch := &wire.Batch{Frames: []wire.Frame{wire.NewFrame([]byte(strings.Repeat("x", 200)))}}
		return func() {
			c.Write(batch)
			conn.out.Reset()
		}
	}
	text := strings.Repeat("x", 200)
	return []allocs.Case{
		allocs.Of("read a line", 0, read("\n", []byte(text+"\n"))),
		allocs.Of("read a frame", 0, read(upgradeRequest("/ws", ""), clientFrame(true, ws.OpText, text))),
		allocs.Of("write a line", 0, write(lines)),
		allocs.Of("write a frame", 0, write(frames)),
	}
}

func TestAllocs(t *testing.T)   { allocs.Test(t, hot()) }
func BenchmarkHot(b *testing.B) { allocs.Bench(b, hot()) }
