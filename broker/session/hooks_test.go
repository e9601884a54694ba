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

// backend answers when the test does.
type backend struct {
	pool  *work.Pool
	asked chan hook.Question
	said  chan error
}

func newBackend() *backend {
	return &backend{work.NewOn(1, func(worker func()) { go worker() }), make(chan hook.Question), make(chan error)}
}

func (b *backend) ask(_ context.Context, q hook.Question) (hook.Answer, error) {
	b.asked <- q
	err := <-b.said
	return hook.Answer{Allow: err == nil}, err
}

// allows the question that is under way, and waits for what comes of it.
func (b *backend) allows(d *desk) {
	b.said <- nil
	for range 2 { // what waited behind it may need the pool as well
		b.pool.Wait()
		d.settle()
	}
}

// binds counts how often a client was bound.
type binds struct {
	queue.Queue
	n atomic.Int64
}

func (q *binds) BindClients(ctx context.Context, claims []queue.Claim) []queue.Outcome[queue.Bound] {
	q.n.Add(int64(len(claims)))
	return q.Queue.BindClients(ctx, claims)
}

// TestGoneWhileAsked: who went before the backend answered is not bound, since he may be connected elsewhere by then.
func TestGoneWhileAsked(t *testing.T) {
	b, counted := newBackend(), new(binds)
	over := func(q queue.Queue) queue.Queue { counted.Queue = q; return counted }
	o := session.Options{Hooks: session.Hooks{Connect: b.ask, Pool: b.pool}}
	d := greeted(t, o, over, connect("phone", ""))
	<-b.asked
	d.do(d.to.Closed)
	b.allows(d)
	if counted.n.Load() != 0 {
		t.Error("a client was bound that had gone")
	}
	d = greeted(t, o, over, connect("phone", ""))
	<-b.asked
	// Nobody is asked about who goes while he waits for his turn, or this would wait for ever.
	d.do(func() { d.Accept(d.loop, newSocket(), connect("tab", "")).Closed() })
	b.allows(d)
	if counted.n.Load() != 1 {
		t.Errorf("bound %d times, want the one that waited", counted.n.Load())
	}
}

// TestLessWhileAsked: namespaces that are new while the backend is asked count, whatever it says.
func TestLessWhileAsked(t *testing.T) {
	b := newBackend()
	var set atomic.Pointer[namespace.Set]
	set.Store(ruled(t, namespace.Rule{Name: "a:*", Subscribe: namespace.Anyone})())
	d := newDesk(t, session.Options{Access: session.Access{Namespaces: set.Load}, Hooks: session.Hooks{Subscribe: b.ask, Pool: b.pool}})
	d.say(`{"type":"subscribe","channel":"a:1","ref":1}`)
	d.say(`{"type":"publish","channel":"a:1","data":1,"ref":2}`)
	if q := <-b.asked; q.Channel != "a:1" || len(d.hears()) != 0 {
		t.Errorf("asked %+v", q)
	}
	set.Store(ruled(t, namespace.Rule{Name: "b:*", Subscribe: namespace.Anyone})())
	d.Recheck()
	b.allows(d)
	if events := d.hears(); len(events) != 2 || events[0].Code != "forbidden" || events[0].Ref.Value != 1 {
		t.Errorf("got %+v", events)
	}
}

// TestRefreshBehindAQuestion: a token that allows less and comes while the backend is asked about a channel ends the subscription behind it,
// when the backend has allowed the token as well.
func TestRefreshBehindAQuestion(t *testing.T) {
	b := newBackend()
	d := greeted(t, session.Options{
		Access: session.Access{
			Verify:     verifying(t),
			Namespaces: ruled(t, namespace.Rule{Name: "a:*", Subscribe: namespace.Grant}),
		},
		Hooks: session.Hooks{Connect: b.ask, Subscribe: b.ask, Pool: b.pool},
	}, plain, connect("", "alice|a:*=sub"))
	<-b.asked
	b.allows(d)
	d.hears()
	d.say(`{"type":"subscribe","channel":"a:1"}`)
	d.say(`{"type":"refresh","token":"alice|"}`)
	d.say(`{"type":"refresh","token":"bob|"}`)
	<-b.asked
	b.said <- nil
	if q := <-b.asked; q.Hook != hook.Connect || !q.Refresh || q.User != "alice" {
		t.Errorf("asked %+v", q)
	}
	b.allows(d) // the backend is not asked about bob
	var got []string
	for _, e := range d.hears() {
		got = append(got, fmt.Sprint(e.Type, e.Channel, e.Code))
	}
	if want := "[subscribeda:1 refreshed unsubscribeda:1forbidden errorforbidden]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
