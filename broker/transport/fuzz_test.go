package transport

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
	"github.com/panjf2000/gnet/v2"

	"switchboard/broker/loop"
	"switchboard/internal/wire"
)

// memoryConn is the part of a gnet.Conn that a pollerConn uses, without a socket.
type memoryConn struct {
	gnet.Conn // nil: everything else panics
	in, out   bytes.Buffer
	onWrite   func() // nil for nothing
}

func (c *memoryConn) Peek(int) ([]byte, error)   { return c.in.Bytes(), nil }
func (c *memoryConn) Discard(n int) (int, error) { return len(c.in.Next(n)), nil }
func (c *memoryConn) OutboundBuffered() int      { return 0 }
func (c *memoryConn) RemoteAddr() net.Addr       { return nil }
func (c *memoryConn) Fd() int                    { return -1 }

func (c *memoryConn) Write(p []byte) (int, error) {
	if c.onWrite != nil {
		c.onWrite()
	}
	return c.out.Write(p)
}

const fuzzLimit = 300

// feed writes in to a connection, in pieces whose sizes come from cuts. It returns the events of
// the session and the bytes for the peer.
func feed(t *testing.T, handshake bool, in, cuts []byte) (events []event, out []byte) {
	speakJSON(t)
	s := &session{t: t, events: make(chan event, len(in)+10)}
	p := &Poller{
		limits:     Limits{Message: fuzzLimit, Page: func(Page) string { return "" }},
		dialects:   dialects(),
		accept:     func(*loop.Loop, Conn, []wire.Request) Receiver { return s },
		lingerTime: time.Hour,
	}
	l := &pollerLoop{
		Loop: loop.New(0), poller: p,
		deadlines: make(map[*pollerConn]deadline), backlog: make(map[*pollerConn]struct{}),
	}
	conn := &memoryConn{}
	c := &pollerConn{loop: l, conn: conn}
	if handshake {
		conn.in.WriteString(upgradeRequest("/ws", ""))
		c.read()
		conn.out.Reset()
	}
	for i := 0; len(in) > 0; i++ {
		n := len(in)
		if len(cuts) > 0 {
			n = min(n, 1+int(cuts[i%len(cuts)]))
		}
		conn.in.Write(in[:n])
		in = in[n:]
		c.read()
	}
	if rest := conn.in.Len(); rest > fuzzLimit+ws.MaxHeaderSize+len(cuts)+256 && c.state != upgrading {
		t.Fatalf("%d bytes of the input are kept", rest)
	}
	close(s.events)
	for e := range s.events {
		events = append(events, e)
	}
	return events, conn.out.Bytes()
}

// FuzzFrames feeds arbitrary bytes in arbitrary pieces. The pieces must not change the result, and
// input that a strict reader accepts must have the same messages here.
func FuzzFrames(f *testing.F) {
	f.Add(join(clientFrame(true, ws.OpText, "{}"), clientFrame(true, ws.OpPing, "x")), []byte{0, 1, 2})
	f.Add(join(clientFrame(false, ws.OpText, "a"), clientFrame(true, ws.OpPong, ""), clientFrame(true, ws.OpContinuation, "b")), []byte{3})
	f.Add(join(clientFrame(false, ws.OpText, strings.Repeat("x", fuzzLimit+1)), clientFrame(true, ws.OpContinuation, "")), []byte{100})
	f.Add(join(clientFrame(true, ws.OpText, strings.Repeat("x", fuzzLimit)), clientFrame(true, ws.OpClose, closeBody(1000, ""))), []byte{7})
	f.Add(raw(0xff, "x"), []byte{})
	f.Fuzz(func(t *testing.T, in, cuts []byte) {
		whole, out := feed(t, true, in, nil)
		cut, outCut := feed(t, true, in, cuts)
		if !slices.Equal(whole, cut) || !bytes.Equal(out, outCut) {
			t.Fatalf("in one piece: %v, %x\ncut: %v, %x", whole, out, cut, outCut)
		}
		var messages []string
		for _, e := range whole {
			if e.kind == "message" {
				messages = append(messages, e.text)
			}
		}
		if want, ok := strictMessages(in); ok && !slices.Equal(messages, want) {
			t.Fatalf("messages %q, another reader finds %q", messages, want)
		}
	})
}

// strictMessages returns the messages that the reader of gobwas finds in a stream of frames. ok is
// false if a message is too large or not text, or if the stream does not end properly: readers may
// differ on those.
func strictMessages(in []byte) (messages []string, ok bool) {
	r := wsutil.Reader{Source: bytes.NewReader(in), State: ws.StateServerSide, CheckUTF8: true,
		OnIntermediate: wsutil.ControlFrameHandler(io.Discard, ws.StateServerSide)}
	for {
		h, err := r.NextFrame()
		if errors.Is(err, io.EOF) {
			return messages, true
		}
		if err != nil {
			return nil, false
		}
		if h.OpCode.IsControl() {
			if h.OpCode == ws.OpClose || r.Discard() != nil {
				return nil, false
			}
			continue
		}
		text, err := io.ReadAll(&r)
		if err != nil || h.OpCode != ws.OpText || len(text) > fuzzLimit {
			return nil, false
		}
		messages = append(messages, string(text))
	}
}

// FuzzMessages makes valid frames of arbitrary text, with fragments and control frames, and feeds
// them in arbitrary pieces. Every message must arrive complete.
func FuzzMessages(f *testing.F) {
	f.Add("hello\nworld", uint64(1))
	f.Add(strings.Repeat("ü", fuzzLimit/2)+"\n"+strings.Repeat("x", fuzzLimit+1)+"\n", uint64(2))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		if !utf8.ValidString(text) {
			return
		}
		rnd := rand.New(rand.NewPCG(seed, 0))
		var in, cuts []byte
		var want []event
		for message := range strings.SplitSeq(text, "\n") {
			in = append(in, fragments(rnd, message)...)
			if len(message) > fuzzLimit {
				want = append(want, event{"too large", ""})
			} else {
				want = append(want, event{"message", message})
			}
			cuts = append(cuts, byte(rnd.IntN(256)))
		}
		if got, _ := feed(t, true, in, cuts); !slices.Equal(got, want) {
			t.Fatalf("the session receives %q, want %q", got, want)
		}
	})
}

// fragments returns a message as frames, with control frames between them.
func fragments(rnd *rand.Rand, message string) (in []byte) {
	op := ws.OpText
	for {
		n := rnd.IntN(len(message) + 1)
		if rnd.IntN(2) == 0 {
			n = len(message)
		}
		fin := n == len(message) && rnd.IntN(3) > 0
		in = append(in, clientFrame(fin, op, message[:n])...)
		if fin {
			return in
		}
		message, op = message[n:], ws.OpContinuation
		if rnd.IntN(2) == 0 {
			control := []ws.OpCode{ws.OpPing, ws.OpPong}[rnd.IntN(2)]
			in = append(in, clientFrame(true, control, strings.Repeat("p", rnd.IntN(126)))...)
		}
	}
}

// FuzzLines feeds arbitrary lines in arbitrary pieces.
func FuzzLines(f *testing.F) {
	f.Add([]byte("{}\n\n [] \r\n"), []byte{0, 1})
	f.Add([]byte("{"+strings.Repeat("x", 3*fuzzLimit)+"\n{}\n"), []byte{200})
	f.Fuzz(func(t *testing.T, in, cuts []byte) {
		if len(in) == 0 || in[0] == 'G' {
			return
		}
		var want []event
		for _, line := range bytes.Split(in, []byte("\n"))[:bytes.Count(in, []byte("\n"))] {
			if len(line) > fuzzLimit {
				want = append(want, event{"too large", ""})
			} else if line = bytes.TrimSpace(line); len(line) > 0 {
				want = append(want, event{"message", string(line)})
			}
		}
		if got, _ := feed(t, false, in, cuts); !slices.Equal(got, want) {
			t.Fatalf("the session receives %q, want %q", got, want)
		}
	})
}

// FuzzHandshake feeds arbitrary handshakes in arbitrary pieces.
func FuzzHandshake(f *testing.F) {
	f.Add([]byte(upgradeRequest("/ws?token=x", "Origin: https://a.example\r\n")), []byte{5})
	f.Add([]byte("GET / HTTP/1.0\r\n\r\n"), []byte{})
	f.Fuzz(func(t *testing.T, in, cuts []byte) {
		in = append([]byte("G"), in...)
		events, _ := feed(t, false, in, nil)
		if cut, _ := feed(t, false, in, cuts); len(in) <= maxHandshake && !slices.Equal(events, cut) {
			t.Fatalf("in one piece: %v\ncut: %v", events, cut)
		}
	})
}

// discard is a Receiver that does nothing.
type discard struct{}

func (discard) Receive(wire.Request, int) {}

func (discard) Malformed(wire.Ref, int, error, bool) {}

func (discard) TooLarge(wire.Ref) {}
func (discard) Broken(string)     {}
func (discard) Writable()         {}
func (discard) Closed()           {}

func (discard) Control(_, _ int) bool { return true }
