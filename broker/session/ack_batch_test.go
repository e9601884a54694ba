package session_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"switchboard/broker/session"
	"switchboard/broker/transport"
	"switchboard/queue"
)

// counter holds each call of Acks until it is let go, and notes whose it was.
type counter struct {
	queue.Queue
	calls chan []string
	hold  chan error
}

func (c *counter) Acks(ctx context.Context, acks []queue.Ack) []queue.Outcome[int] {
	clients := make([]string, len(acks))
	for i, a := range acks {
		clients[i] = a.Client
	}
	c.calls <- clients
	if err := <-c.hold; err != nil {
		return slices.Repeat([]queue.Outcome[int]{{Err: err}}, len(acks))
	}
	return c.Queue.Acks(ctx, acks)
}

// TestAcksGoTogether: while the store is told of one acknowledgement those of others gather, and go in one call, as far as
// they have come by then; and one that failed goes again.
func TestAcksGoTogether(t *testing.T) {
	c := &counter{calls: make(chan []string, 1), hold: make(chan error)}
	d := newDeskOn(t, session.Options{}, func(q queue.Queue) queue.Queue { c.Queue = q; return c })
	clients := []string{"phone", "tablet", "laptop"}
	to := map[string]transport.Receiver{"phone": d.to}
	for _, client := range clients[1:] {
		d.do(func() {
			to[client] = d.Accept(d.loop, newSocket(), nil)
			receive(to[client], fmt.Appendf(nil, `{"type":"connect","client":"%s"}`, client))
		})
		d.settle()
	}
	last := map[string]int64{}
	push := func(client string) {
		a, err := d.queue.AppendClient(t.Context(), queue.ClientPush{Client: client, Data: []byte("1")})
		if err != nil {
			t.Fatal(err)
		}
		d.Hint(client, a.ID, a.Prev, []byte("1"))
		d.do(func() { receive(to[client], fmt.Appendf(nil, `{"type":"ack","id":%d}`, a.ID)) })
		last[client] = a.ID
	}
	called := func(want ...string) {
		t.Helper()
		if got := <-c.calls; !slices.Equal(got, want) {
			t.Errorf("a call for %v, want %v", got, want)
		}
	}
	push("phone")
	called("phone")
	push("tablet")
	push("laptop")
	push("tablet")
	c.hold <- nil
	called("tablet", "laptop")
	push("phone")
	c.hold <- context.DeadlineExceeded
	called("phone")
	c.hold <- nil
	d.settle()
	d.Tick()
	called("laptop")
	c.hold <- nil
	called("tablet")
	c.hold <- nil
	d.settle()
	for _, client := range clients {
		if got, _, err := d.queue.Client(t.Context(), client); err != nil || got.Acked != last[client] || got.Queued != 0 {
			t.Errorf("%s: %+v, %v, want %d acknowledged", client, got, err, last[client])
		}
	}
}
