package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/broker/binding"
	"switchboard/broker/namespace"
	"switchboard/broker/session"
	"switchboard/broker/transport"
	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// call stores a change for alice's phone, or with the client "" for all of hers, and has the
// session apply it. It returns the results of ListsChanged.
func (h *harness) call(kind registry.SubscriptionKind, client string, after int64, channels ...string) string {
	h.t.Helper()
	h.storeChange(kind, client, after, channels...)
	applied, refused, complete := h.ListsChanged(h.t.Context(), []string{"alice/phone", "alice/gone"})
	h.settle()
	told := fmt.Sprint(applied, " ", complete)
	for _, r := range refused {
		told += fmt.Sprint(", ", r.Client, " ", r.Channel, " ", r.Code)
	}
	return told
}

// storeChange is call without the application.
func (h *harness) storeChange(kind registry.SubscriptionKind, client string, after int64, channels ...string) {
	h.t.Helper()
	h.ahead.Add(int64(time.Second))
	c := registry.SubscriptionChange{User: "alice", Client: client, Channels: channels, Kind: kind, After: after}
	if _, err := h.registry.Subscribe(h.t.Context(), c); err != nil {
		h.t.Fatal(err)
	}
}

// reconnect connects the client anew, with further messages in the same write.
func (h *harness) reconnect(token string, messages ...string) {
	h.t.Helper()
	h.onLoop(h.receiver.Closed)
	h.settle()
	h.ahead.Add(int64(time.Second))
	h.sock = newSocket()
	h.onLoop(func() {
		h.receiver = h.Accept(h.loop, h.sock, connect("phone", token))
		for _, m := range messages {
			receive(h.receiver, "%s", m)
		}
	})
	h.settle()
}

// rulesFor are rules by which clients may subscribe by themselves to open: channels only.
func rulesFor(t *testing.T) session.Access {
	return session.Access{Verify: claiming, Namespaces: ruled(t,
		namespace.Rule{Name: "*", Subscribe: namespace.Grant}, namespace.Rule{Name: "open:*", Subscribe: namespace.Users})}
}

// TestCallSubscribes has calls that subscribe and unsubscribe a connected client.
func TestCallSubscribes(t *testing.T) {
	h := newUnconnected(t, session.Options{Access: rulesFor(t), Limits: session.Limits{Channels: 4}}, unwrapped, connect("phone", "alice|c"))
	h.hints = true
	h.wantEvents("connected, subscribed c")
	first := h.append("b", "1")
	h.append("b", "2")
	want := func(told, wanted string) {
		t.Helper()
		if told != wanted {
			t.Errorf("told %q, want %q", told, wanted)
		}
	}
	want(h.call(registry.Subscribed, "", -1, "a"), "1 true")
	h.wantEvents("subscribed a")
	want(h.call(registry.Subscribed, "alice/phone", first, "b"), "1 true")
	h.wantEvents("subscribed b, message b")
	want(h.call(registry.Subscribed, "", -1, "a", "b"), "1 true") // repeated
	h.wantEvents("")
	want(h.call(registry.Subscribed, "", -1, "open:1", "z"), "1 true, alice/phone z rate_limited")
	h.wantEvents("subscribed open:1, unsubscribed z rate_limited")

	// A client that leaves is subscribed again by the next call.
	h.expect("unsubscribed", "", "", `{"type":"unsubscribe","channel":"a"}`)
	want(h.call(registry.Subscribed, "alice/gone", -1, "x"), "1 true")
	h.wantEvents("")
	want(h.call(registry.Subscribed, "", -1, "a"), "1 true")
	h.wantEvents("subscribed a")

	// The latest call applies, whether it was for the user or the client, and also to the claim.
	want(h.call(registry.Unsubscribed, "alice/phone", -1, "a", "open:1", "unknown"), "1 true")
	h.wantEvents("unsubscribed open:1 forbidden, unsubscribed a forbidden")
	want(h.call(registry.Unsubscribed, "", -1, "b", "c", "z"), "1 true")
	h.wantEvents("unsubscribed c forbidden, unsubscribed b forbidden")
	h.expect("error", "forbidden", "not allowed to subscribe", `{"type":"subscribe","channel":"c"}`)
	h.send(`{"type":"refresh","token":"alice|c,e"}`) // it does not say when it was issued
	h.wantEvents("refreshed, subscribed e")
	h.expect("subscribed", "", "", `{"type":"subscribe","channel":"open:1"}`) // the rules allow it
	if !session.HasExtra(h.receiver) {
		t.Error("the session has no profile")
	}
}

// TestCallSubscribesLater has calls for a client that is away.
func TestCallSubscribesLater(t *testing.T) {
	h := newUnconnected(t, session.Options{Access: rulesFor(t)}, unwrapped, connect("phone", "alice|"))
	h.hints = true
	var last int64
	for n := range 3 {
		last = h.append("b", fmt.Sprint(n))
	}
	h.expect("connected", "", "", `{"type":"subscribe","channel":"open:1"}`)
	h.received()
	h.onLoop(h.receiver.Closed)
	h.settle()
	h.storeChange(registry.Subscribed, "", 0, "b")
	h.storeChange(registry.Subscribed, "alice/phone", -1, "a")
	h.reconnect("alice|")
	h.wantEvents("connected, subscribed b, message b, message b, message b, subscribed a")
	h.reconnect("alice|") // the position of the call was for the first connection
	h.wantEvents("connected, subscribed b, subscribed a")
	h.reconnect("alice|", fmt.Sprintf(`{"type":"subscribe","channel":"b","after":%d}`, last-1))
	h.wantEvents("connected, subscribed b, message b, subscribed a")

	h.onLoop(h.receiver.Closed)
	h.settle()
	h.storeChange(registry.Unsubscribed, "", -1, "b", "open:1")
	resume := func(channel string) string {
		return fmt.Sprintf(`{"type":"subscribe","channel":%q,"after":%d}`, channel, last)
	}
	h.reconnect("alice|", resume("open:1"), resume("b"))
	h.wantEvents("connected, error  forbidden, error  forbidden, subscribed a")
	h.expect("subscribed", "", "", "%s", resume("open:1")) // the client knows, and decides to come back
	h.reconnect("alice|", resume("open:1"))
	h.wantEvents("connected, subscribed open:1, subscribed a")
}

// TestCallForgetsRejoined has a client that subscribes again after the backend has unsubscribed it
// on the same connection. It can resume that.
func TestCallForgetsRejoined(t *testing.T) {
	h := newUnconnected(t, session.Options{Access: rulesFor(t)}, unwrapped, connect("phone", "alice|"))
	h.send(`{"type":"subscribe","channel":"open:1"}`)
	h.call(registry.Unsubscribed, "", -1, "open:1")
	h.wantEvents("connected, subscribed open:1, unsubscribed open:1 forbidden")
	h.expect("subscribed", "", "", `{"type":"subscribe","channel":"open:1"}`)
	h.reconnect("alice|", `{"type":"subscribe","channel":"open:1","after":5}`)
	if got := summary(h.received()); got[:len("connected, subscribed open:1")] != "connected, subscribed open:1" {
		t.Errorf("got %s", got)
	}
}

// failingLists fails Subscriptions while failing is set, and calls read before it reads.
type failingLists struct {
	session.Registry
	failing atomic.Bool
	read    func()
}

func (r *failingLists) wrap(reg session.Registry) { r.Registry = reg }

func (r *failingLists) Subscriptions(ctx context.Context, list []registry.Subscriber) []registry.SubscriptionsOutcome {
	if r.failing.Load() {
		return []registry.SubscriptionsOutcome{{Err: errors.New("the store fails")}}
	}
	if r.read != nil {
		defer r.read()
	}
	return r.Registry.Subscriptions(ctx, list)
}

// TestListsRetried has a store that fails when a session reads its lists. The next tick reads them
// again. A connect is refused.
func TestListsRetried(t *testing.T) {
	r := new(failingLists)
	h := newUnconnected(t, session.Options{Access: rulesFor(t), Registry: r}, unwrapped, connect("phone", "alice|"))
	h.wantEvents("connected")
	r.failing.Store(true)
	h.storeChange(registry.Subscribed, "", -1, "a")
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan string, 1)
	go func() {
		applied, _, complete := h.ListsChanged(ctx, []string{"alice/phone"})
		told <- fmt.Sprint(applied, " ", complete)
	}()
	h.tick(2)
	h.wantEvents("")
	cancel()
	if got := <-told; got != "0 false" {
		t.Errorf("told %q", got)
	}
	r.failing.Store(false)
	h.tick(2)
	h.wantEvents("subscribed a")
	r.failing.Store(true)
	h.reconnect("alice|")
	h.wantClosed(wire.CloseOverloaded)
}

// TestListsChangeDuringConnect has a call of the backend just after the bind has read the lists.
func TestListsChangeDuringConnect(t *testing.T) {
	r := new(failingLists)
	h := newUnconnected(t, session.Options{Access: rulesFor(t), Registry: r}, unwrapped, connect("phone", "alice|"))
	h.storeChange(registry.Subscribed, "", -1, "a")
	h.onLoop(h.receiver.Closed)
	h.settle()
	r.read = func() {
		r.read = nil
		h.storeChange(registry.Subscribed, "", -1, "b")
		h.storeChange(registry.Unsubscribed, "", -1, "a")
		if applied, _, complete := h.ListsChanged(t.Context(), []string{"alice/phone"}); applied != 0 || !complete {
			t.Errorf("applied %d, %t", applied, complete)
		}
	}
	h.reconnect("alice|")
	// The subscription to a may begin before the lists are read again.
	switch got := summary(h.received()); got {
	case "connected, unsubscribed a forbidden, subscribed b", "connected, subscribed b",
		"connected, subscribed a, unsubscribed a forbidden, subscribed b":
	default:
		t.Errorf("got %s", got)
	}
}

// bindHook calls bound before the binding to a user is stored.
type bindHook struct {
	session.Registry
	bound func()
}

func (r *bindHook) wrap(reg session.Registry) { r.Registry = reg }

func (r *bindHook) BindUsers(ctx context.Context, list []registry.UserBinding) []error {
	if r.bound != nil {
		r.bound()
	}
	return r.Registry.BindUsers(ctx, list)
}

// TestListsReadAfterBind has a call of the backend just before the user has the client. The call
// does not find the client, so that the client must find its lists.
func TestListsReadAfterBind(t *testing.T) {
	r := new(bindHook)
	h := newUnconnected(t, session.Options{Access: rulesFor(t), Registry: r}, unwrapped, connect("phone", "alice|"))
	h.wantEvents("connected")
	h.storeChange(registry.Subscribed, "", -1, "a")
	h.onLoop(h.receiver.Closed)
	h.settle()
	r.bound = func() {
		r.bound = nil
		h.storeChange(registry.Subscribed, "", -1, "b")
		h.storeChange(registry.Unsubscribed, "alice/phone", -1, "a")
	}
	h.reconnect("alice|")
	h.wantEvents("connected, subscribed b")
}

// TestListsRenewed has a server that missed the call of the backend. It hears of it at a beat, or
// when it compares or renews the binding.
func TestListsRenewed(t *testing.T) {
	h := newUnconnected(t, session.Options{Access: rulesFor(t)}, unwrapped, connect("phone", "alice|"))
	h.wantEvents("connected")
	h.storeChange(registry.Subscribed, "", -1, "a")
	h.CheckTokens([]string{"bob", "alice"})
	h.settle()
	h.wantEvents("subscribed a")
	h.storeChange(registry.Subscribed, "alice/phone", -1, "b")
	if _, err := h.Rebind(t.Context(), []binding.Lost{{Client: "alice/phone"}}); err != nil {
		t.Fatal(err)
	}
	h.settle()
	h.wantEvents("subscribed b")
}

// TestListsOfGuest has a client without a user.
func TestListsOfGuest(t *testing.T) {
	o := session.Options{Access: session.Access{Namespaces: ruled(t, namespace.Rule{Name: "*", Subscribe: namespace.Grant})}}
	h := newUnconnected(t, o, unwrapped, []wire.Request{{Type: wire.TypeConnect, Client: "guest", Secret: "known-to-this-tab-alone"}})
	subscribe := func(channel string) {
		c := registry.SubscriptionChange{Client: "guest", Channels: []string{channel}, Kind: registry.Subscribed, After: -1}
		if _, err := h.registry.Subscribe(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	h.wantEvents("connected")
	subscribe("a")
	h.CheckTokens([]string{"guest", "\nguest"})
	h.settle()
	h.wantEvents("subscribed a")
	h.onLoop(h.receiver.Closed)
	h.settle()
	subscribe("b")
	h.sock = newSocket()
	h.onLoop(func() {
		h.receiver = h.Accept(h.loop, h.sock, []wire.Request{{Type: wire.TypeConnect, Client: "guest", Secret: "known-to-this-tab-alone"}})
	})
	h.settle()
	h.wantEvents("connected, subscribed a, subscribed b")
}

// TestListsWhenClosed has a connection that ends before it has applied its lists.
func TestListsWhenClosed(t *testing.T) {
	r := new(failingLists)
	h := newUnconnected(t, session.Options{Access: rulesFor(t), Registry: r}, unwrapped, connect("phone", "alice|"))
	h.storeChange(registry.Subscribed, "", -1, "a")
	var receiver transport.Receiver = h.receiver
	r.read = func() { h.onLoop(receiver.Closed) }
	if applied, refused, complete := h.ListsChanged(t.Context(), []string{"alice/phone"}); applied != 0 || len(refused) > 0 || !complete {
		t.Errorf("applied %d, %v, %t", applied, refused, complete)
	}
	h.settle()
}

// failingReads fails the reads of channels while failing is set.
type failingReads struct {
	Queue
	failing *atomic.Bool
}

func (q failingReads) ReadChannels(ctx context.Context, reads []queue.ChannelRead) []queue.Outcome[queue.Page] {
	if !q.failing.Load() {
		return q.Queue.ReadChannels(ctx, reads)
	}
	out := make([]queue.Outcome[queue.Page], len(reads))
	for i := range out {
		out[i].Err = errors.New("the store fails")
	}
	return out
}

func (q failingReads) ReadChannel(ctx context.Context, channel string, after int64, limit int) (queue.Page, error) {
	if q.failing.Load() {
		return queue.Page{}, errors.New("the store fails")
	}
	return q.Queue.ReadChannel(ctx, channel, after, limit)
}

// TestBackendSubRetried has a store that fails when the subscriptions of a token and of a call
// begin. The client does not notice: later ticks try again.
func TestBackendSubRetried(t *testing.T) {
	var failing atomic.Bool
	h := newUnconnected(t, session.Options{Access: rulesFor(t)},
		func(q Queue) Queue { return failingReads{q, &failing} }, connect("phone", "alice|"))
	h.append("b", "1")
	h.wantEvents("connected")
	failing.Store(true)
	h.send(`{"type":"refresh","token":"alice|a,b"}`)
	h.wantEvents("refreshed")
	h.storeChange(registry.Subscribed, "", 0, "c")
	h.CheckTokens([]string{"alice"})
	h.tick(3)
	h.wantEvents("")
	failing.Store(false)
	h.tick(2)
	h.wantEvents("subscribed a, subscribed b, subscribed c")
}
