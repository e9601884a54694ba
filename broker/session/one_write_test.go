package session_test

import (
	"strings"
	"testing"

	"switchboard/broker/session"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// resume connects another client, which sends connect and a subscribe from after at once.
func (h *harness) resume(client string, after int64) *socket {
	sock := newSocket()
	h.onLoop(func() {
		receiver := h.Accept(h.loop, sock, nil)
		receive(receiver, `{"type":"connect","client":"%s"}`, client)
		receive(receiver, `{"type":"subscribe","channel":"news","after":%d}`, after)
	})
	h.settle()
	return sock
}

// store appends n messages of some size to the channel and returns the first one's id.
func (h *harness) store(n, size int) (first int64) {
	data := []byte(`"` + strings.Repeat("a", size) + `"`)
	for range n {
		a, err := h.queue.AppendChannel(h.t.Context(), queue.ChannelPush{Channel: "news", Data: data})
		if err != nil {
			h.t.Fatal(err)
		}
		if first == 0 {
			first = a.ID
		}
	}
	return first
}

func TestResumeIsOneWrite(t *testing.T) {
	h := newHarness(t, session.Options{})
	first := h.store(11, 90)
	h.send(`{"type":"subscribe","channel":"news","after":%d}`, first) // from now on the channel's tail has the messages
	sock := h.resume("tablet", first)
	h.onLoop(func() {
		if len(sock.written) != 12 || sock.written[0].Type != wire.TypeConnected || sock.written[1].Type != wire.TypeSubscribed {
			t.Errorf("got %d messages, want connected, subscribed and the ten that were missed", len(sock.written))
		}
		if sock.writes != 1 {
			t.Errorf("%d writes, want 1", sock.writes)
		}
	})
}

// TestResumeOfNewChannelIsOneWrite has a client subscribe to a channel that has no subscriber on
// this server, so that it is read from the store after the bind.
func TestResumeOfNewChannelIsOneWrite(t *testing.T) {
	h := newHarness(t, session.Options{})
	first := h.store(11, 90)
	hold := make(chan struct{}) // occupies all workers until the messages have come
	for range 8 {
		h.pool.Go(func() { <-hold })
	}
	sock := newSocket()
	h.onLoop(func() {
		receiver := h.Accept(h.loop, sock, nil)
		receive(receiver, `{"type":"connect","client":"tablet"}`)
		receive(receiver, `{"type":"subscribe","channel":"news","after":%d}`, first)
		receive(receiver, `{"type":"subscribe","channel":"$all"}`) // refused as always
	})
	close(hold)
	h.settle()
	h.onLoop(func() {
		if len(sock.written) != 13 || sock.written[0].Type != wire.TypeConnected || sock.written[1].Type != wire.TypeSubscribed ||
			sock.written[12].Type != wire.TypeError {
			t.Errorf("got %v", sock.written)
		}
		if sock.writes != 1 {
			t.Errorf("%d writes, want 1", sock.writes)
		}
	})
}
