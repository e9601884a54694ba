package session_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"switchboard/broker/hook"
	"switchboard/broker/namespace"
	"switchboard/broker/session"
	"switchboard/broker/work"
	"switchboard/queue"
)

// backend is a hook that waits for the test.
type backend struct {
	pool    *work.Pool
	asked   chan hook.Question
	answers chan error // nil allows
}

func newBackend() *backend {
	return &backend{work.NewOn(1, func(worker func()) { go worker() }), make(chan hook.Question), make(chan error)}
}

func (b *backend) ask(_ context.Context, q hook.Question) (hook.Answer, error) {
	b.asked <- q
	err := <-b.answers
	return hook.Answer{Allow: err == nil}, err
}

// allow allows the current question, and waits until nothing is under way.
func (b *backend) allow(h *harness) {
	b.answers <- nil
	for range 2 { // the messages that waited may need the pool too
		b.pool.Wait()
		h.settle()
	}
}

// bindCounter is a queue that counts the bound clients.
type bindCounter struct {
	Queue
	n atomic.Int64
}

func (q *bindCounter) BindClients(ctx context.Context, claims []queue.Claim) []queue.Outcome[queue.Bound] {
	q.n.Add(int64(len(claims)))
	return q.Queue.BindClients(ctx, claims)
}

// TestClientGoneDuringConnectHook checks that a client is not bound if it left before the backend
// answered: it may have connected elsewhere.
func TestClientGoneDuringConnectHook(t *testing.T) {
	b, counted := newBackend(), new(bindCounter)
	wrap := func(q Queue) Queue { counted.Queue = q; return counted }
	o := session.Options{Hooks: session.Hooks{Connect: b.ask, Pool: b.pool}}
	h := newUnconnected(t, o, wrap, connect("phone", ""))
	<-b.asked
	h.onLoop(h.receiver.Closed)
	b.allow(h)
	if counted.n.Load() != 0 {
		t.Error("a client was bound after it had left")
	}
	h = newUnconnected(t, o, wrap, connect("phone", ""))
	<-b.asked
	// The hook must not be called for a client that leaves while it waits for the pool: allow below
	// answers only one call.
	h.onLoop(func() {
		h.Accept(h.loop, newSocket(), connect("tab", "")).Closed()
	})
	b.allow(h)
	if counted.n.Load() != 1 {
		t.Errorf("bound %d times, want 1", counted.n.Load())
	}
}

// TestRulesChangeDuringSubscribeHook changes the access rules while the backend is asked. The new
// rules apply, although the backend allows the subscribe.
func TestRulesChangeDuringSubscribeHook(t *testing.T) {
	b := newBackend()
	var set atomic.Pointer[namespace.Set]
	set.Store(ruled(t, namespace.Rule{Name: "a:*", Subscribe: namespace.Anyone})())
	h := newHarness(t, session.Options{Access: session.Access{Namespaces: set.Load}, Hooks: session.Hooks{Subscribe: b.ask, Pool: b.pool}})
	h.send(`{"type":"subscribe","channel":"a:1","ref":1}`)
	h.send(`{"type":"publish","channel":"a:1","data":1,"ref":2}`)
	if q := <-b.asked; q.Channel != "a:1" || len(h.received()) != 0 {
		t.Errorf("asked %+v", q)
	}
	set.Store(ruled(t, namespace.Rule{Name: "b:*", Subscribe: namespace.Anyone})())
	h.Recheck()
	b.allow(h)
	if events := h.received(); len(events) != 2 || events[0].Code != "forbidden" || events[0].Ref.Value != 1 {
		t.Errorf("got %+v", events)
	}
}

// TestRefreshDuringSubscribeHook sends a token that allows less, while the backend is asked about a
// channel. The subscription begins, and ends after the backend has allowed the token.
func TestRefreshDuringSubscribeHook(t *testing.T) {
	b := newBackend()
	h := newUnconnected(t, session.Options{
		Access: session.Access{
			Verify:     verifying(t),
			Namespaces: ruled(t, namespace.Rule{Name: "a:*", Subscribe: namespace.Grant}),
		},
		Hooks: session.Hooks{Connect: b.ask, Subscribe: b.ask, Pool: b.pool},
	}, unwrapped, connect("", "alice|a:*=sub"))
	<-b.asked
	b.allow(h)
	h.received()
	h.send(`{"type":"subscribe","channel":"a:1"}`)
	h.send(`{"type":"refresh","token":"alice|"}`)
	h.send(`{"type":"refresh","token":"bob|"}`)
	<-b.asked
	b.answers <- nil
	if q := <-b.asked; q.Hook != hook.Connect || !q.Refresh || q.User != "alice" {
		t.Errorf("asked %+v", q)
	}
	b.allow(h) // the backend is not asked about bob
	var got []string
	for _, e := range h.received() {
		got = append(got, fmt.Sprint(e.Type, e.Channel, e.Code))
	}
	if want := "[subscribeda:1 refreshed unsubscribeda:1forbidden errorforbidden]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
