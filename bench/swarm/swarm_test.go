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

// serveOnce accepts one connection and runs script on it.
func serveOnce(t *testing.T, script func(c net.Conn)) (addr string) {
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

func openSwarm(t *testing.T, opts Options) (*Swarm, error) {
	if opts.Dialect == nil {
		opts.Dialect = &Switchboard{}
	}
	opts.Connections, opts.Channels = 1, []string{"news"}
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

// sendOnly returns the dialect of a server that only sends, in lines or in frames.
func sendOnly(path string) *SendOnly { return &SendOnly{Switchboard{Path: path}} }

// TestConnectionErrors checks that an error on a connection names the connection.
func TestConnectionErrors(t *testing.T) {
	subscribed := native.New(0).Event(wire.Event{Type: wire.TypeSubscribed}).Prepared
	for name, tc := range map[string]struct {
		dialect Dialect
		answer  []byte
		want    string
	}{
		"end":               {answer: nil, want: "unexpected EOF"},
		"error":             {answer: native.New(0).Event(wire.Event{Type: wire.TypeError, Code: "overloaded"}).Prepared.Line(), want: "overloaded"},
		"not JSON":          {answer: []byte("hello\n"), want: "not JSON"},
		"a refused upgrade": {dialect: &Switchboard{Path: "/ws"}, answer: []byte("HTTP/1.1 403 Forbidden\r\n\r\n"), want: "403 Forbidden"},
		"subscribed twice":  {answer: append(subscribed.Line(), subscribed.Line()...), want: "second answer"},
		"a binary frame":    {dialect: sendOnly("/"), answer: []byte("\x82\x00"), want: "opcode 0x2"},
		"a close frame":     {dialect: sendOnly("/"), answer: []byte("\x88\x04\x0f\xa1by"), want: `4001 "by"`},
		"a gap":             {answer: append(subscribed.Line(), native.New(0).Event(wire.Event{Type: wire.TypeGap}).Prepared.Line()...), want: "gap"},
	} {
		t.Run(name, func(t *testing.T) {
			addr := serveOnce(t, func(c net.Conn) {
				if _, ok := tc.dialect.(*SendOnly); !ok {
					_, _ = c.Read(make([]byte, 1000))
				}
				_, _ = c.Write(tc.answer)
			})
			s, err := openSwarm(t, Options{Addr: addr, Dialect: tc.dialect})
			if err == nil {
				err = s.Until(t.Context(), "wait", func() bool { return false })
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "connection 0 (client 0, channel news)") {
				t.Errorf("got %v, want something about %q", err, tc.want)
			}
		})
	}
}

// TestReceivedPayload checks that a message in another JSON notation is accepted, and that another
// payload is a fault.
func TestReceivedPayload(t *testing.T) {
	addr := serveOnce(t, func(c net.Conn) {
		fmt.Fprintf(c, "%s{\"id\":7,\"type\":\"message\",\"data\":%s,\"channel\":\"news\"}\n",
			message(5, payload(5)).Line(), payload(7))
		fmt.Fprintf(c, "%s", message(9, `{"n":9}`).Line())
		_, _ = c.Read(make([]byte, 1)) // until the client closes
	})
	s, err := openSwarm(t, Options{Addr: addr, Dialect: sendOnly("")})
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

// TestSplit checks a message that arrives in two reads, in each framing.
func TestSplit(t *testing.T) {
	frame := message(5, payload(5))
	for path, message := range map[string][]byte{"": frame.Line(), "/": frame.WebSocket()} {
		for _, cut := range []int{1, 20, len(message) - 1} {
			more := make(chan struct{})
			addr := serveOnce(t, func(c net.Conn) {
				_, _ = c.Write(message[:cut])
				<-more
				_, _ = c.Write(message[cut:])
				_, _ = c.Read(make([]byte, 1)) // until the client closes
			})
			s, err := openSwarm(t, Options{Addr: addr, Dialect: sendOnly(path)})
			if err == nil {
				err = s.Until(t.Context(), "receive a piece", func() bool { return len(s.conns[0].partial) == cut })
			}
			close(more)
			if err == nil {
				err = s.Until(t.Context(), "receive the rest", func() bool { n, _ := s.Received(); return n == 1 })
			}
			if err != nil {
				t.Fatal(err)
			}
			if wrong, faults := s.Verify([][]int64{{5}}); wrong > 0 || len(s.conns[0].partial) > 0 {
				t.Errorf("cut at %d: %q, %d bytes left", cut, faults, len(s.conns[0].partial))
			}
		}
	}
}

// TestStall checks that waiting without an event fails and reports the progress.
func TestStall(t *testing.T) {
	addr := serveOnce(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) })
	s, err := openSwarm(t, Options{Addr: addr, Dialect: sendOnly(""), Stall: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Until(t.Context(), "receive", func() bool { return false })
	if err == nil || !strings.Contains(err.Error(), "receive: no event for 1ns; 1 of 1 connections") {
		t.Errorf("got %v", err)
	}
}

// TestWake checks that Wake makes Until check its condition.
func TestWake(t *testing.T) {
	addr := serveOnce(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) })
	s, err := openSwarm(t, Options{Addr: addr, Dialect: sendOnly("")})
	if err != nil {
		t.Fatal(err)
	}
	before := s.events
	s.Wake()
	if err := s.Until(t.Context(), "wake", func() bool { return s.events > before }); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Until(ctx, "wake", func() bool { return false }); err == nil {
		t.Error("no error after an interrupt")
	}
}
