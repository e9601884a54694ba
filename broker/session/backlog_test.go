package session_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchboard/broker/session"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// TestSlowClientIsClosedAfterTimeout also checks that a drained backlog restarts the timeout.
func TestSlowClientIsClosedAfterTimeout(t *testing.T) {
	h := newHarness(t, session.Options{Timing: session.Timing{Slow: 5 * time.Second}})
	h.setBacklog(true)
	for range 10 {
		h.tick(4)
		h.wantClosed("")
		h.drainBacklog()
	}
	h.tick(4)
	h.wantClosed("")
	h.tick(1)
	h.wantClosed(wire.CloseSlow)
}

// TestDrainedBacklogIsASignOfLife has a client whose pong is delayed by the messages that it reads
// first.
func TestDrainedBacklogIsASignOfLife(t *testing.T) {
	pingEvery(t, 2*time.Second)
	h := newHarness(t, session.Options{Timing: session.Timing{Slow: time.Hour}})
	h.setBacklog(true)
	for range 10 {
		h.tick(3)
		h.wantClosed("")
		h.drainBacklog()
	}
	h.tick(4)
	h.wantClosed(wire.CloseIdle)
}

// TestPingsDuringBacklog checks that a backlogged client gets one pong for many pings.
func TestPingsDuringBacklog(t *testing.T) {
	h := newHarness(t, session.Options{})
	h.setBacklog(true)
	for n := range 1000 {
		h.onLoop(func() { receive(h.receiver, `{"type":"ping","ref":%d}`, n) })
	}
	h.send(`{"type":"history","channel":"a","ref":5000}`)
	h.wantClosed("")
	h.onLoop(func() {
		if len(h.sock.written) > 0 {
			t.Errorf("written during a backlog: %v", h.sock.written)
		}
	})
	h.setBacklog(false)
	h.onLoop(h.receiver.Writable)
	h.settle()
	h.onLoop(func() {
		w := h.sock.written
		if len(w) != 2 || w[0].Type != "pong" || w[0].Ref.Value != 999 || w[1].Type != "history" {
			t.Errorf("answered with %v, want the pong to the last ping and the history", w)
		}
	})
}

// TestUnreadRepliesAreBounded checks that a client that does not read workers' replies is closed.
func TestUnreadRepliesAreBounded(t *testing.T) {
	h := newHarness(t, session.Options{})
	reply := []byte(`"` + strings.Repeat("x", 10<<10) + `"`)
	for n := range 20 { // any number is allowed while the client reads
		h.Reply("phone", int64(n), reply)
	}
	h.setBacklog(true)
	for range 3 {
		for n := range 6 {
			h.Reply("phone", int64(n), reply)
		}
		h.drainBacklog()
	}
	h.wantClosed("")
	h.onLoop(func() { h.sock.bytes = 0 })
	for n := range 100 {
		h.Reply("phone", int64(n), reply)
	}
	h.settle()
	h.wantClosed(wire.CloseOverloaded)
	h.onLoop(func() {
		if h.sock.bytes > 80<<10 || h.sock.afterMS == 0 {
			t.Errorf("%d bytes are buffered, and the client may reconnect after %d ms", h.sock.bytes, h.sock.afterMS)
		}
	})
}

// TestHistoryFitsOneWrite checks that a long history comes in pages of a bounded size. The server
// must buffer a page that the client does not read.
func TestHistoryFitsOneWrite(t *testing.T) {
	h := newHarness(t, session.Options{})
	const messages = 40
	for n := range messages {
		push := queue.ChannelPush{Channel: "a", Data: fmt.Appendf(nil, `"%d%s"`, n, strings.Repeat("x", 4<<10))}
		if _, err := h.queue.AppendChannel(t.Context(), push); err != nil {
			t.Fatal(err)
		}
	}
	var got, after int64
	for more := true; more; {
		h.send(`{"type":"history","channel":"a","after":%d}`, after)
		h.onLoop(func() {
			page := h.sock.written[len(h.sock.written)-1]
			list := *page.Messages
			got, after, more = got+int64(len(list)), list[len(list)-1].ID, page.More
			if h.sock.bytes > 40<<10 {
				t.Errorf("%d bytes in one answer", h.sock.bytes)
			}
			h.sock.bytes = 0
		})
	}
	if got != messages {
		t.Errorf("%d messages in all pages, want %d", got, messages)
	}
}

// TestMessagesKeepTheirOrder has a message come after the backlog has drained but before Writable.
// It must not overtake the messages that wait.
func TestMessagesKeepTheirOrder(t *testing.T) {
	h := newHarness(t, session.Options{})
	h.setBacklog(true)
	h.send(`{"type":"history","channel":"a","ref":1}`)
	h.setBacklog(false)
	h.send(`{"type":"history","channel":"a","ref":2}`)
	h.onLoop(h.receiver.Writable)
	h.settle()
	h.onLoop(func() {
		if len(h.sock.written) != 2 || h.sock.written[0].Ref.Value != 1 || h.sock.written[1].Ref.Value != 2 {
			t.Errorf("answered: %v", h.sock.written)
		}
	})
}
