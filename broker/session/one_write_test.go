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

// TestPublishIsOneWrite checks that a client that has subscribed to the channel receives its own
// message in one write with the answer, and that another publish afterwards is written, too.
func TestPublishIsOneWrite(t *testing.T) {
	h := newHarness(t, session.Options{})
	h.hints = true
	h.send(`{"type":"subscribe","channel":"news"}`)
	h.received()
	for i := range 2 {
		before := h.sock.writes
		h.onLoop(func() {
			receive(h.receiver, `{"type":"publish","channel":"news","data":1}`)
			h.pool.Wait() // the message and the answer are posted before the next run of the loop
		})
		h.settle()
		if got := types(h.received()); got != "message published" || h.sock.writes != before+1 {
			t.Errorf("publish %d: %s in %d writes, want one", i, got, h.sock.writes-before)
		}
	}
}

// TestDeliveryDuringCall checks that a client receives a message although a store call of its own
// does not end.
func TestDeliveryDuringCall(t *testing.T) {
	h := newHarness(t, session.Options{})
	h.hints = true
	h.send(`{"type":"subscribe","channel":"news"}`)
	h.received()
	called, end := make(chan struct{}), make(chan struct{})
	h.beforePublish = func(session.Publication) error { close(called); <-end; return nil }
	h.onLoop(func() { receive(h.receiver, `{"type":"publish","channel":"other","data":1}`) })
	<-called
	a, err := h.queue.AppendChannel(t.Context(), queue.ChannelPush{Channel: "news", Data: []byte(`2`)})
	if err != nil {
		t.Fatal(err)
	}
	before := h.sock.writes
	h.hint("news", a)
	h.onLoop(func() {}) // the delivery
	h.onLoop(func() {})
	if got := types(h.received()); got != "message" || h.sock.writes != before+1 {
		t.Errorf("%s in %d writes, want a message", got, h.sock.writes-before)
	}
	close(end)
	h.settle()
}
