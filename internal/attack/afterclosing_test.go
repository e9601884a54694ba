//go:build long

package attack

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/gobwas/ws"
)

// maxAfterClosing is more than the broker reads from a connection that it has ended, together with
// the buffers of both systems.
const maxAfterClosing = 64 << 20

// A talker is a connection that the broker ends, and that sends on without reading.
type talker struct {
	name string
	open func(s *scenario) (*attacker, error)
	head string // the broker ends the connection because of it
	more string // sent over and over
}

// talkers returns a talker for each way in which the broker ends a connection.
func (s *scenario) talkers(t *testing.T) []talker {
	const endless = "Content-Length: 1099511627776\r\n\r\n"
	forged := connectAs("mallory", "forged")
	frame := func(f ws.Frame) string { return string(ws.MustCompileFrame(ws.MaskFrame(f))) }
	many := strings.Repeat("x", 60_000)
	bomb := ws.NewTextFrame(compressedSpaces(t, 60))
	bomb.Header.Rsv = rsv1
	list := []talker{
		{"lines", openPort(false), forged + "\n", many + "\n"},
		{"a request on the TCP port", openPort(false), "POST / HTTP/1.1\r\n\r\n", many},
		{"a refused handshake", openPort(false), "GET /nowhere HTTP/1.1\r\nHost: broker\r\n\r\n", many},
		{"a refused stream", openPort(true), "GET /sse?channel=hall:x&token=forged HTTP/1.1\r\nHost: broker\r\n" + endless, many},
		{"an accepted stream", openPort(true), "GET /sse?channel=hall:x&client=mallory&token=" + s.token("mallory") + " HTTP/1.1\r\nHost: broker\r\n\r\n", many},
		{"a body without a key", openPort(true), "POST /v1/push HTTP/1.1\r\nHost: broker\r\n" + endless, many},
		{"a body above the limit", openPort(true), strings.TrimSuffix(s.pushHead(1<<40), "\r\n") + "\r\n", many},
	}
	for _, e := range webSockets {
		first := frame(ws.NewTextFrame([]byte(forged)))
		list = append(list, talker{"messages, " + e.name, openWebSocket(e), first, frame(ws.NewTextFrame([]byte(many)))})
		list = append(list, talker{"pings, " + e.name, openWebSocket(e), first, strings.Repeat(frame(ws.NewPingFrame(nil)), 10_000)})
	}
	return append(list, talker{"bombs", openWebSocket(compressed), frame(ws.NewTextFrame([]byte(forged))), frame(bomb)})
}

// talkAfterClosing sends on after the broker has ended the connection. The broker must reset it
// instead of reading everything for seconds.
func talkAfterClosing(t *testing.T, s *scenario) {
	most := 0
	for _, kind := range s.talkers(t) {
		a, err := kind.open(s)
		if err != nil {
			t.Fatalf("%s: %v", kind.name, err)
		}
		a.sendRaw(kind.head)
		sent := 0
		for sent < maxAfterClosing && err == nil {
			var n int
			n, err = io.WriteString(a, kind.more)
			sent += n
		}
		_ = a.Close()
		most = max(most, sent)
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the broker takes %d MB after the end: %v", kind.name, sent>>20, err)
		}
	}
	t.Logf("at most %d KB were taken after the end", most>>10)
}
