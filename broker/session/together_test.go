package session_test

import (
	"fmt"
	"strings"
	"testing"

	"switchboard/broker/session"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// resume connects another client, which asks for what it missed in the same breath.
func (d *desk) resume(client string, after int64) *socket {
	sock := newSocket()
	d.do(func() {
		to := d.Accept(d.loop, sock, nil)
		receive(to, fmt.Appendf(nil, `{"type":"connect","client":"%s"}`, client))
		receive(to, fmt.Appendf(nil, `{"type":"subscribe","channel":"news","after":%d}`, after))
	})
	d.settle()
	return sock
}

// store appends n messages of some size to the channel and returns the first one's id.
func (d *desk) store(n, size int) (first int64) {
	data := []byte(`"` + strings.Repeat("a", size) + `"`)
	for range n {
		a, err := d.queue.AppendChannel(d.t.Context(), queue.ChannelPush{Channel: "news", Data: data})
		if err != nil {
			d.t.Fatal(err)
		}
		if first == 0 {
			first = a.ID
		}
	}
	return first
}

func TestResumingIsOneWrite(t *testing.T) {
	d := newDesk(t, session.Options{})
	first := d.store(11, 90)
	d.say(`{"type":"subscribe","channel":"news","after":%d}`, first) // from now on the tail has it
	sock := d.resume("tablet", first)
	d.do(func() {
		if len(sock.written) != 12 || sock.written[0].Type != wire.TypeConnected || sock.written[1].Type != wire.TypeSubscribed {
			t.Errorf("got %d messages, want connected, subscribed and the ten that were missed", len(sock.written))
		}
		if sock.writes != 1 {
			t.Errorf("%d writes, want 1", sock.writes)
		}
	})
}

// TestResumingAChannelOfOnesOwnIsOneWrite: nobody here has the channel yet, so the store is asked for it behind the binding.
func TestResumingAChannelOfOnesOwnIsOneWrite(t *testing.T) {
	d := newDesk(t, session.Options{})
	first := d.store(11, 90)
	hold := make(chan struct{}) // all workers, until both messages have come
	for range 8 {
		d.pool.Go(func() { <-hold })
	}
	sock := newSocket()
	d.do(func() {
		to := d.Accept(d.loop, sock, nil)
		receive(to, []byte(`{"type":"connect","client":"tablet"}`))
		receive(to, fmt.Appendf(nil, `{"type":"subscribe","channel":"news","after":%d}`, first))
		receive(to, []byte(`{"type":"subscribe","channel":"$all"}`)) // refused as ever
	})
	close(hold)
	d.settle()
	d.do(func() {
		if len(sock.written) != 13 || sock.written[0].Type != wire.TypeConnected || sock.written[1].Type != wire.TypeSubscribed ||
			sock.written[12].Type != wire.TypeError {
			t.Errorf("got %v", sock.written)
		}
		if sock.writes != 1 {
			t.Errorf("%d writes, want 1", sock.writes)
		}
	})
}
