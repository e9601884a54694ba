package transport

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/gobwas/ws"

	"switchboard/broker/dialect"
	"switchboard/internal/wire"
)

func TestHello(t *testing.T) {
	over(t, inboundWays, func(t *testing.T, w way) {
		p, s := w.serve(t, setup{}).connect()
		var want []wire.Request
		if w.framed {
			want = []wire.Request{{Type: wire.TypeConnect, Token: "abc", Client: "phone"}}
		}
		if !reflect.DeepEqual(s.first, want) {
			t.Errorf("the handshake stands for %+v, want %+v", s.first, want)
		}
		if s.peer != p.LocalAddr().String() {
			t.Errorf("the remote address is %q, want %v", s.peer, p.LocalAddr())
		}
	})
}

func TestMessagesComeWholeAndInOrder(t *testing.T) {
	cuts := map[string][]int{
		"in one piece":  {1 << 30},
		"in odd pieces": {1, 2, 3, 5, 7, 1000, 64 << 10},
		"byte by byte":  {1},
	}
	over(t, inboundWays, func(t *testing.T, w way) {
		service := w.serve(t, setup{})
		for name, sizes := range cuts {
			t.Run(name, func(t *testing.T) {
				lengths := []int{2, 3, 125, 126, 127, 1000}
				if len(sizes) > 1 || sizes[0] > 1 {
					lengths = append(lengths, 65535, 65536, messageLimit-1, messageLimit, 2)
				}
				p, s := service.in(t).connect()
				var all []byte
				var want []event
				for i, n := range lengths {
					text := strings.Repeat(string(rune('a'+i)), n)
					all = append(all, p.message(text)...)
					want = append(want, event{"message", text})
				}
				p.writeCut(all, sizes...)
				s.want(want...)
			})
		}
	})
}

func TestLineEndings(t *testing.T) {
	speakJSON(t)
	p, s := lineWay.serve(t, setup{}).connect()
	p.write([]byte("a\r\n\n \t\r\n b \nc\n"))
	s.want(event{"message", "a"}, event{"message", "b"}, event{"message", "c"})
}

func TestTooLargeIsSkipped(t *testing.T) {
	over(t, inboundWays, func(t *testing.T, w way) {
		p, s := w.serve(t, setup{}).connect()
		for _, n := range []int{messageLimit + 1, messageLimit + 2, 1 << 20} {
			for _, sizes := range [][]int{{1 << 30}, {1000, 70_000}} {
				p.writeCut(join(p.message(strings.Repeat("x", n)), p.message("after")), sizes...)
				s.want(event{"too large", ""}, event{"message", "after"})
			}
		}
	})
}

// TestTooLargeHasItsRef checks that the reference of a skipped message is found if it is at the
// start, however the bytes arrive.
func TestTooLargeHasItsRef(t *testing.T) {
	speakJSON(t)
	filler := strings.Repeat("x", messageLimit)
	over(t, inboundWays, func(t *testing.T, w way) {
		p, s := w.serve(t, setup{}).connect()
		for text, want := range map[string]string{
			`{"type":"publish","ref":7,"channel":"c","data":"` + filler + `"}`: "7",
			`{"data":{"ref":1},"ref":-8,"x":"` + filler + `"}`:                 "-8",
			`{"type":"publish","data":"` + filler + `","ref":7}`:               "",
			`{"ref":"7","data":"` + filler + `"}`:                              "",
			`["ref",7,"` + filler + `"]`:                                       "",
		} {
			for _, sizes := range [][]int{{1 << 30}, {1, 9, 30, 70_000}} {
				p.writeCut(join(p.message(text), p.message("after")), sizes...)
				s.want(event{"too large", want}, event{"message", "after"})
			}
		}
	})
	over(t, socketWays, func(t *testing.T, w way) {
		p, s := w.serve(t, setup{}).connect()
		p.writeCut(join(
			clientFrame(false, ws.OpText, `{"ref":7,"data":"`), clientFrame(false, ws.OpContinuation, filler),
			clientFrame(true, ws.OpContinuation, `"}`), p.message("after"),
		), 1<<30)
		s.want(event{"too large", "7"}, event{"message", "after"})
	})
}

func TestFragments(t *testing.T) {
	half := strings.Repeat("x", messageLimit/2)
	part := func(fin bool, op ws.OpCode, text string) []byte { return clientFrame(fin, op, text) }
	ping := part(true, ws.OpPing, "")
	tests := map[string]struct {
		frames [][]byte
		want   []event
	}{
		"three": {
			[][]byte{part(false, opData(), "a"), part(false, ws.OpContinuation, "b"), part(true, ws.OpContinuation, "c")},
			[]event{{"message", "abc"}},
		},
		"empty ones": {
			[][]byte{part(false, opData(), ""), part(false, ws.OpContinuation, ""), part(true, ws.OpContinuation, "")},
			[]event{{"message", ""}},
		},
		"a ping between": {
			[][]byte{part(false, opData(), "a"), ping, part(true, ws.OpContinuation, "b")},
			[]event{{"message", "ab"}},
		},
		"a character in two": {
			[][]byte{part(false, opData(), "\xc3"), part(true, ws.OpContinuation, "\xa9")},
			[]event{{"message", "é"}},
		},
		"exactly the limit": {
			[][]byte{part(false, opData(), half), part(true, ws.OpContinuation, half)},
			[]event{{"message", half + half}},
		},
		"too large by the last": {
			[][]byte{part(false, opData(), half), part(false, ws.OpContinuation, half), part(true, ws.OpContinuation, "x")},
			[]event{{"too large", ""}},
		},
		"too large and an empty last": {
			[][]byte{part(false, opData(), half+half+"x"), ping, part(true, ws.OpContinuation, "")},
			[]event{{"too large", ""}},
		},
		"too large in the middle": {
			[][]byte{
				part(false, opData(), half), part(false, ws.OpContinuation, half+"x"), ping,
				part(false, ws.OpContinuation, half+half), part(true, ws.OpContinuation, "x"),
			},
			[]event{{"too large", ""}},
		},
	}
	over(t, socketWays, func(t *testing.T, w way) {
		service := w.serve(t, setup{})
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				for _, sizes := range [][]int{{1 << 30}, {1, 2, 3, 60_000}} {
					p, s := service.in(t).connect()
					p.writeCut(join(join(test.frames...), p.message("after")), sizes...)
					s.want(append(test.want[:len(test.want):len(test.want)], event{"message", "after"})...)
				}
			})
		}
	})
}

func TestWritesComeWholeAndInOrder(t *testing.T) {
	over(t, allWays, func(t *testing.T, w way) {
		p, s := w.serve(t, setup{}).connect()
		var want []event
		s.do(func() {
			for i, n := range []int{10, 125, 126, 1000, 65535, 65536, 10} {
				text := fmt.Sprintf(`{"n":%d,"x":"%s"}`, i, strings.Repeat("x", n-len(`{"n":0,"x":""}`)+4))
				want = append(want, event{"message", text})
				s.conn.Write(batchOf(text))
			}
			batch := &dialect.Batch{}
			for i := range 100 {
				message := fmt.Sprintf(`{"batch":%d}`, i)
				want = append(want, event{"message", message})
				batch.Messages = append(batch.Messages, text(message))
			}
			s.conn.Write(batch)
		})
		p.want(want...)
	})
}

func TestPing(t *testing.T) {
	over(t, allWays, func(t *testing.T, w way) {
		p, s := w.serve(t, setup{}).connect()
		s.do(func() { s.conn.Ping() })
		ping := p.read()
		if ping.kind != "ping" {
			t.Fatalf("the peer reads %v, want a ping", ping)
		}
		if !w.framed {
			return // a pong on TCP is an ordinary message
		}
		p.write(clientFrame(true, ws.OpPong, ping.text))
		p.write(clientFrame(true, ws.OpPong, "not asked for"))
		for _, payload := range []string{"", "are you there", strings.Repeat("x", 125)} {
			p.write(clientFrame(true, ws.OpPing, payload))
			p.want(event{"pong", payload})
		}
		s.do(func() {
			if s.control != 5 {
				t.Errorf("the session counts %d control frames, want 5", s.control)
			}
			s.refuse = true
		})
		p.write(join(clientFrame(true, ws.OpPing, "one too many"), p.message("after")))
		s.want(event{"message", "after"})
		s.do(func() { s.conn.Write(batchOf("no pong came before")) })
		p.want(event{"message", "no pong came before"})
	})
}

// TestEveryFrameIsCounted checks that every frame counts for the rate limit, also if the library
// reads the frames and if it is not the last of a message.
func TestEveryFrameIsCounted(t *testing.T) {
	const frames = 1000
	empty := func(fin bool, op ws.OpCode) []byte { return clientFrame(fin, op, "") }
	over(t, socketWays, func(t *testing.T, w way) {
		for _, o := range []setup{{}, {compress: true}} {
			service := w.serve(t, o)
			p, s := service.connect()
			all := empty(false, opData())
			for range frames {
				all = append(all, empty(false, ws.OpContinuation)...)
			}
			p.writeCut(all, 1, 70, 5000) // before the message is whole
			p.write(join(empty(true, ws.OpContinuation), p.message("next")))
			s.want(event{"message", ""}, event{"message", "next"})
			s.do(func() {
				// The library reads ahead: the first frame of the next message may count already.
				if n := s.control - frames - 1; n != 0 && (w.name != webWay.name || n != 1) {
					t.Errorf("%d frames are counted besides the messages, want %d", s.control, 1+frames)
				}
			})
		}
	})
	p, s := lineWay.serve(t, setup{}).connect() // connect sends one empty line
	p.write(join(bytes.Repeat(spoken.Empty, frames-1), p.message("x")))
	s.want(event{"message", "x"})
	s.do(func() {
		if s.control != frames {
			t.Errorf("%d empty lines are counted, want %d", s.control, frames)
		}
	})
}

// TestFirstMessageIsShort checks that Limits.First applies before a client has connected.
func TestFirstMessageIsShort(t *testing.T) {
	over(t, inboundWays, func(t *testing.T, w way) {
		service := w.serve(t, setup{first: 1000})
		connect := func() (*peer, *session) {
			p := service.dial()
			p.handshake("/ws") // with a token, the URL would contain the connect request
			if !w.framed {
				p.write(spoken.Empty)
			}
			return p, service.session()
		}
		for _, n := range []int{1001, 1 << 16} {
			p, s := connect()
			long := p.message(strings.Repeat("x", n))
			p.write(join(long, long, p.message("after")))
			s.want(event{"too large", ""}, event{"message", strings.Repeat("x", n)}, event{"message", "after"})
		}
		p, s := connect()
		p.write(p.message(strings.Repeat("x", 1000)))
		s.want(event{"message", strings.Repeat("x", 1000)})
	})
}
