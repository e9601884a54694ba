package client

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/wire"
)

// TestRealSockets is the only test with kernel sockets. The other tests use net.Pipe.
func TestRealSockets(t *testing.T) {
	for _, tr := range transports {
		t.Run(tr.name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			peers := make(chan *peer, 1)
			defer tr.serve(t, ln, peers)()
			got := make(chan Message, 1)
			scheme, _, _ := strings.Cut(tr.url, ":")
			c, err := New(Options{
				URLs:      []string{scheme + "://" + ln.Addr().String()},
				OnMessage: func(m Message) { got <- m },
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, end := context.WithCancel(t.Context())
			result := make(chan error)
			go func() { result <- c.Run(ctx) }()
			p := <-peers
			p.answer(p.expect(wire.TypeConnect), `{"type":"connected","client":"c","ping":25}`)
			data := `"` + strings.Repeat("x", 100_000) + `"`
			p.sendf(`{"type":"message","id":1,"data":%s}`, data)
			if m := <-got; m.ID != 1 || string(m.Data) != data {
				t.Fatalf("got message %d with %d bytes", m.ID, len(m.Data))
			}
			p.expectAck(1)
			end()
			if err := <-result; err != nil {
				t.Fatal(err)
			}
			if _, open := <-p.in; open {
				t.Fatal("the client sent another message")
			}
		})
	}
}

func TestRunEndsWhileADialHangs(t *testing.T) {
	for _, url := range []string{"tcp://127.0.0.1:1", "ws://127.0.0.1:1", "wss://127.0.0.1:1"} {
		t.Run(url, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := New(Options{URLs: []string{url}})
				if err != nil {
					t.Fatal(err)
				}
				var remotes []net.Conn
				dialled := make(chan struct{}, 1)
				c.netDial = func(context.Context, string, string) (net.Conn, error) {
					ours, theirs := net.Pipe() // never read, so the handshake hangs
					remotes = append(remotes, theirs)
					dialled <- struct{}{}
					return ours, nil
				}
				ctx, end := context.WithCancel(t.Context())
				result := make(chan error, 1)
				go func() { result <- c.Run(ctx) }()
				<-dialled
				synctest.Wait()
				start := time.Now()
				end()
				if err := <-result; err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took > 2*closeGrace {
					t.Fatalf("Run took %s to return", took)
				}
			})
		})
	}
}

func TestLines(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", 10_000) + `"}`
	for name, tc := range map[string]struct {
		stream string
		want   []string
		end    error
	}{
		"several":                {stream: "{}\n\r\n[1]\r\n", want: []string{"{}", "[1]"}, end: io.EOF},
		"long":                   {stream: long + "\n1\n", want: []string{long, "1"}, end: io.EOF},
		"end within a line":      {stream: "{}\n{", want: []string{"{}"}, end: io.ErrUnexpectedEOF},
		"end within a long line": {stream: long, end: io.ErrUnexpectedEOF},
		"too long":               {stream: strings.Repeat("x", maxMessage+10_000), end: errMessageTooLong},
		"empty":                  {end: io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			go func() { io.WriteString(theirs, tc.stream); theirs.Close() }()
			l := newLineConn(ours)
			defer l.close()
			for _, want := range tc.want {
				if got, err := l.read(); err != nil || string(got) != want {
					t.Fatalf("read %.20q, %v; want %.20q", got, err, want)
				}
			}
			if got, err := l.read(); !errors.Is(err, tc.end) {
				t.Fatalf("read %.20q, %v; want %v", got, err, tc.end)
			}
		})
	}
}
