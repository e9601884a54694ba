package swarm

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"switchboard/broker/dialect/native"
	"switchboard/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve accepts one connection and plays script on it.
func serve(t *testing.T, script func(c net.Conn)) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		script(c)
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

func open(t *testing.T, opts Options) (*Swarm, error) {
	if opts.Dialect == nil {
		opts.Dialect = &Switchboard{}
	}
	opts.Connections, opts.Channels, opts.Payload = 1, []string{"news"}, []byte(`{"n":1}`)
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, s.Open(t.Context(), func() {})
}

// silent are the servers to which nothing is said, of lines and of frames.
func silent(path string) *Silent { return &Silent{Switchboard{Path: path}} }

// TestRefused checks that whatever a server does wrong is told with the connection that met it.
func TestRefused(t *testing.T) {
	greeting := native.New(0).Event(wire.Event{Type: wire.TypeSubscribed}).Packed
	for name, tc := range map[string]struct {
		dialect Dialect
		answer  []byte
		want    string
	}{
		"end":                {answer: nil, want: "unexpected EOF"},
		"error":              {answer: native.New(0).Event(wire.Event{Type: wire.TypeError, Code: "overloaded"}).Packed.Line(), want: "overloaded"},
		"not JSON":           {answer: []byte("hello\n"), want: "not JSON"},
		"a refused upgrade":  {dialect: &Switchboard{Path: "/ws"}, answer: []byte("HTTP/1.1 403 Forbidden\r\n\r\n"), want: "403 Forbidden"},
		"subscribed twice":   {answer: append(greeting.Line(), greeting.Line()...), want: "second answer"},
		"a binary frame":     {dialect: silent("/"), answer: []byte("\x82\x00"), want: "opcode 0x2"},
		"a close frame":      {dialect: silent("/"), answer: []byte("\x88\x04\x0f\xa1by"), want: `4001 "by"`},
		"a gap of the queue": {answer: append(greeting.Line(), native.New(0).Event(wire.Event{Type: wire.TypeGap}).Packed.Line()...), want: "gap"},
	} {
		t.Run(name, func(t *testing.T) {
			addr := serve(t, func(c net.Conn) {
				if _, ok := tc.dialect.(*Silent); !ok {
					_, _ = c.Read(make([]byte, 1000))
				}
				_, _ = c.Write(tc.answer)
			})
			s, err := open(t, Options{Addr: addr, Dialect: tc.dialect})
			if err == nil {
				err = s.Until(t.Context(), "wait", func() bool { return false })
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "connection 0 (client 0, channel news)") {
				t.Errorf("got %v, want something about %q", err, tc.want)
			}
		})
	}
}

// TestChanged checks that a message in another notation is one, and that another payload is a fault.
func TestChanged(t *testing.T) {
	addr := serve(t, func(c net.Conn) {
		fmt.Fprintf(c, "%s{\"id\":7,\"type\":\"message\",\"data\":{\"n\":1},\"channel\":\"news\"}\n",
			message(5, `{"n":1}`).Line())
		fmt.Fprintf(c, "%s", message(9, `{"n":2}`).Line())
		_, _ = c.Read(make([]byte, 1)) // until the other side is done
	})
	s, err := open(t, Options{Addr: addr, Dialect: silent("")})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Until(t.Context(), "receive", func() bool { n, _ := s.Received(); return n == 3 }); err != nil {
		t.Fatal(err)
	}
	wrong, faults := s.Verify([][]int64{{7, 5}})
	if wrong != 1 || !strings.Contains(faults[0], `not pushed`) {
		t.Errorf("got %d faults: %q", wrong, faults)
	}
}

// TestCut checks a message that comes in two reads, for each framing.
func TestCut(t *testing.T) {
	frame := message(5, `{"n":1}`)
	for path, message := range map[string][]byte{"": frame.Line(), "/": frame.WebSocket()} {
		for _, cut := range []int{1, 20, len(message) - 1} {
			more := make(chan struct{})
			addr := serve(t, func(c net.Conn) {
				_, _ = c.Write(message[:cut])
				<-more
				_, _ = c.Write(message[cut:])
				_, _ = c.Read(make([]byte, 1)) // until the other side is done
			})
			s, err := open(t, Options{Addr: addr, Dialect: silent(path)})
			if err == nil {
				err = s.Until(t.Context(), "receive a piece", func() bool { return len(s.conns[0].rest) == cut })
			}
			close(more)
			if err == nil {
				err = s.Until(t.Context(), "receive the rest", func() bool { n, _ := s.Received(); return n == 1 })
			}
			if err != nil {
				t.Fatal(err)
			}
			if wrong, faults := s.Verify([][]int64{{5}}); wrong > 0 || len(s.conns[0].rest) > 0 {
				t.Errorf("cut at %d: %q, %d bytes left", cut, faults, len(s.conns[0].rest))
			}
		}
	}
}

// TestStall checks that silence ends a wait, and says how far it was.
func TestStall(t *testing.T) {
	addr := serve(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) })
	s, err := open(t, Options{Addr: addr, Dialect: silent(""), Stall: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Until(t.Context(), "receive", func() bool { return false })
	if err == nil || !strings.Contains(err.Error(), "receive: nothing came for 1ns; 1 of 1 connections") {
		t.Errorf("got %v", err)
	}
}

// TestWake checks that a condition is looked at again when somebody asks for it.
func TestWake(t *testing.T) {
	addr := serve(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) })
	s, err := open(t, Options{Addr: addr, Dialect: silent("")})
	if err != nil {
		t.Fatal(err)
	}
	before := s.turns
	s.Wake()
	if err := s.Until(t.Context(), "wake", func() bool { return s.turns > before }); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Until(ctx, "wake", func() bool { return false }); err == nil {
		t.Error("an interrupt was not told")
	}
}
