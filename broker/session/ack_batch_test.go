package session_test

import (
	"context"
	"slices"
	"testing"

	"switchboard/broker/session"
	"switchboard/broker/transport"
	"switchboard/queue"
)

// blockedAcks is a queue whose Acks waits for the test. It sends the clients of each call.
type blockedAcks struct {
	Queue
	calls  chan []string
	result chan error // lets a call go on, or fails it
}

func (c *blockedAcks) Acks(ctx context.Context, acks []queue.Ack) []queue.Outcome[int] {
	clients := make([]string, len(acks))
	for i, a := range acks {
		clients[i] = a.Client
	}
	c.calls <- clients
	if err := <-c.result; err != nil {
		return slices.Repeat([]queue.Outcome[int]{{Err: err}}, len(acks))
	}
	return c.Queue.Acks(ctx, acks)
}

// TestAcksAreCoalesced checks that the acknowledgements which come during a call form the next
// call, with the latest id of each client, and that a failed one is sent again.
func TestAcksAreCoalesced(t *testing.T) {
	c := &blockedAcks{calls: make(chan []string, 1), result: make(chan error)}
	h := newHarnessOn(t, session.Options{}, func(q Queue) Queue { c.Queue = q; return c })
	clients := []string{"phone", "tablet", "laptop"}
	receivers := map[string]transport.Receiver{"phone": h.receiver}
	for _, client := range clients[1:] {
		h.onLoop(func() {
			receivers[client] = h.Accept(h.loop, newSocket(), nil)
			receive(receivers[client], `{"type":"connect","client":"%s"}`, client)
		})
		h.settle()
	}
	last := map[string]int64{}
	push := func(client string) {
		a, err := h.queue.AppendClient(t.Context(), queue.ClientPush{Client: client, Data: []byte("1")})
		if err != nil {
			t.Fatal(err)
		}
		h.Hint(client, a.ID, a.Prev, []byte("1"))
		h.onLoop(func() { receive(receivers[client], `{"type":"ack","id":%d}`, a.ID) })
		last[client] = a.ID
	}
	expectCall := func(want ...string) {
		t.Helper()
		if got := <-c.calls; !slices.Equal(got, want) {
			t.Errorf("a call for %v, want %v", got, want)
		}
	}
	push("phone")
	expectCall("phone")
	push("tablet")
	push("laptop")
	push("tablet")
	c.result <- nil
	expectCall("tablet", "laptop")
	push("phone")
	c.result <- context.DeadlineExceeded
	expectCall("phone")
	c.result <- nil
	h.settle()
	h.Tick() // retries laptop first; meanwhile the retry of tablet waits for the next call
	expectCall("laptop")
	c.result <- nil
	expectCall("tablet")
	c.result <- nil
	h.settle()
	for _, client := range clients {
		if got, _, err := h.queue.Client(t.Context(), client); err != nil || got.Acked != last[client] || got.Queued != 0 {
			t.Errorf("%s: %+v, %v, want %d acknowledged", client, got, err, last[client])
		}
	}
}
