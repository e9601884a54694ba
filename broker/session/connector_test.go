package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/broker/session"
	"switchboard/broker/transport"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// gate is a queue whose BindClients waits for the test.
type gate struct {
	Queue
	calls chan []string // the clients of each call, which then waits for open
	open  chan error    // lets a call go on, or fails it

	mu    sync.Mutex // guards the field below
	reads int        // calls of ReadChannels for other channels than $all
}

func (g *gate) BindClients(ctx context.Context, claims []queue.Claim) []queue.Outcome[queue.Bound] {
	var clients []string
	for _, c := range claims {
		clients = append(clients, c.Client)
	}
	g.calls <- clients
	if err := <-g.open; err != nil {
		out := make([]queue.Outcome[queue.Bound], len(claims))
		for i := range out {
			out[i].Err = err
		}
		return out
	}
	return g.Queue.BindClients(ctx, claims)
}

func (g *gate) ReadChannels(ctx context.Context, reads []queue.ChannelRead) []queue.Outcome[queue.Page] {
	g.mu.Lock()
	defer g.mu.Unlock()
	if reads[0].Channel != wire.AllChannel {
		g.reads++
	}
	return g.Queue.ReadChannels(ctx, reads)
}

// connectAll has clients connect and subscribe, each to a channel of its own.
func (h *harness) connectAll(clients ...string) (socks []*socket) {
	for _, client := range clients {
		sock := newSocket()
		socks = append(socks, sock)
		h.onLoop(func() {
			receiver := h.Accept(h.loop, sock, nil)
			receive(receiver, `{"type":"connect","client":"%s","secret":"the secret of all clients here"}`, client)
			receive(receiver, `{"type":"subscribe","channel":"own-%s","after":0}`, client)
		})
	}
	return socks
}

func gated(t *testing.T) (*harness, *gate) {
	g := &gate{calls: make(chan []string, 1), open: make(chan error, 1)}
	wrap := func(q Queue) Queue { g.Queue = q; return g }
	g.open <- nil
	h := newHarnessOn(t, session.Options{}, wrap)
	<-g.calls
	return h, g
}

// TestConnectBatch checks that the clients that connect during a bind are bound by one call, and
// that their channels are read by one more.
func TestConnectBatch(t *testing.T) {
	h, g := gated(t)
	first := h.connectAll("first")
	if got := <-g.calls; !slices.Equal(got, []string{"first"}) {
		t.Fatalf("bound %v", got)
	}
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprint("tab-", i))
	}
	socks := h.connectAll(names...)
	again := h.connectAll("tab-7") // in the same batch: it must wait for the lock of the first tab-7, but not delay the others
	g.open <- nil
	if got := <-g.calls; !slices.Equal(got, names) {
		t.Fatalf("the next batch bound %v", got)
	}
	g.open <- nil
	if got := <-g.calls; !slices.Equal(got, []string{"tab-7"}) {
		t.Fatalf("the batch after it bound %v", got)
	}
	for answered := false; !answered; { // the second tab-7 must not close the first before its answer
		h.onLoop(func() { answered = len(socks[7].written) > 0 })
	}
	g.open <- nil
	h.settle()
	h.onLoop(func() {
		for i, sock := range slices.Concat(first, socks, again) {
			if len(sock.written) != 2 || sock.written[0].Type != wire.TypeConnected || sock.written[1].Type != wire.TypeSubscribed || sock.writes != 1 {
				t.Errorf("%d received %v in %d writes", i, sock.written, sock.writes)
			}
			firstTab7 := i == 1+7 // after the one socket in first
			if firstTab7 != (sock.closed == wire.CloseSuperseded) {
				t.Errorf("%d was closed for %q", i, sock.closed)
			}
		}
		if g.reads != 2 {
			t.Errorf("%d calls read the channels, want 2: the channel of the second tab-7 was bound already", g.reads)
		}
	})
}

// TestFailedConnectBatch checks that each client of a failed batch is refused, and that a later
// connect succeeds.
func TestFailedConnectBatch(t *testing.T) {
	h, g := gated(t)
	socks := h.connectAll("a")
	<-g.calls
	socks = append(socks, h.connectAll("b", "c")...)
	for range 2 {
		g.open <- errors.New("the store is away")
	}
	<-g.calls
	h.settle()
	h.onLoop(func() {
		for i, sock := range socks {
			if sock.closed != wire.CloseOverloaded || len(sock.written) == 0 || sock.written[0].Code != string(wire.Unavailable) {
				t.Errorf("%d received %v and was closed for %q", i, sock.written, sock.closed)
			}
		}
	})
	g.open <- nil
	back := h.connectAll("b")
	<-g.calls
	h.settle()
	h.onLoop(func() {
		if len(back[0].written) != 2 || back[0].written[0].Type != wire.TypeConnected {
			t.Errorf("b received %v", back[0].written)
		}
	})
}

// TestClientGoneBeforeBind checks that a client that leaves before its batch is bound is not bound.
func TestClientGoneBeforeBind(t *testing.T) {
	h, g := gated(t)
	h.connectAll("first")
	<-g.calls
	h.onLoop(func() {
		receiver := h.Accept(h.loop, newSocket(), nil)
		receive(receiver, `{"type":"connect","client":"gone"}`)
		receiver.Closed()
	})
	h.connectAll("last")
	g.open <- nil
	if got := <-g.calls; !slices.Equal(got, []string{"last"}) {
		t.Errorf("bound %v", got)
	}
	g.open <- nil
	h.settle()
	if n, _ := h.Counts(); n != 3 { // the client of the harness, first and last
		t.Errorf("%d connections, want 3", n)
	}
}

// slowRegistry is the registry of a harness whose HoldClients waits for the test.
type slowRegistry struct {
	session.Registry
	calls chan struct{} // receives each call, which then waits for open
	open  chan struct{}
}

func (r *slowRegistry) wrap(reg session.Registry) { r.Registry = reg }

func (r *slowRegistry) HoldClients(ctx context.Context, server string, clients []string) error {
	r.calls <- struct{}{}
	<-r.open
	return r.Registry.HoldClients(ctx, server, clients)
}

// TestClientGoneWhileHeld checks that a client that leaves while the store is slow is not bound
// afterwards, since it may have connected elsewhere meanwhile.
func TestClientGoneWhileHeld(t *testing.T) {
	slow := &slowRegistry{calls: make(chan struct{}, 1), open: make(chan struct{}, 1)}
	slow.open <- struct{}{}
	h := newHarnessOn(t, session.Options{Registry: slow}, func(q Queue) Queue { return q })
	<-slow.calls
	var receiver transport.Receiver
	h.onLoop(func() {
		receiver = h.Accept(h.loop, newSocket(), nil)
		receive(receiver, `{"type":"connect","client":"gone"}`)
	})
	<-slow.calls
	h.onLoop(receiver.Closed)
	slow.open <- struct{}{}
	h.settle()
	if c, known, err := h.queue.Client(t.Context(), "gone"); known || err != nil {
		t.Errorf("bound as %+v, %v", c, err)
	}
}

// lateQueue is the queue of a harness that finds the first bind of each client late.
type lateQueue struct {
	Queue
	onLate func(client string) // called for each late bind
	asked  map[string]int64    // the claim's time that is not late, by client; 0 before the first bind
}

func (q *lateQueue) BindClients(ctx context.Context, claims []queue.Claim) []queue.Outcome[queue.Bound] {
	out := make([]queue.Outcome[queue.Bound], len(claims))
	for i, c := range claims {
		if _, found := q.asked[c.Client]; !found {
			q.asked[c.Client] = time.Now().UnixMilli() + int64(len(q.asked))
			out[i] = queue.Outcome[queue.Bound]{Value: queue.Bound{Asked: q.asked[c.Client]}, Err: queue.ErrLate}
			q.onLate(c.Client)
			continue
		}
		if c.Asked != q.asked[c.Client] {
			panic("the claim is not repeated with the time from the store")
		}
		out[i] = q.Queue.BindClients(ctx, []queue.Claim{c})[0]
	}
	return out
}

// TestLateBind checks that a bind that the store finds late is repeated if the connection is open,
// and only then: a client that has left may be connected elsewhere.
func TestLateBind(t *testing.T) {
	var h *harness
	q := &lateQueue{asked: map[string]int64{}}
	left := make(chan transport.Receiver, 1)
	q.onLate = func(client string) {
		if client == "gone" {
			h.onLoop((<-left).Closed)
		}
	}
	h = newHarnessOn(t, session.Options{}, func(store Queue) Queue { q.Queue = store; return q })
	h.onLoop(func() {
		receiver := h.Accept(h.loop, newSocket(), nil)
		left <- receiver
		receive(receiver, `{"type":"connect","client":"gone"}`)
	})
	tablet := h.connectAll("tablet")[0]
	h.settle()
	h.onLoop(func() {
		if len(tablet.written) == 0 || tablet.written[0].Type != wire.TypeConnected {
			t.Errorf("tablet received %v", tablet.written)
		}
	})
	if c, known, err := h.queue.Client(t.Context(), "gone"); known || err != nil {
		t.Errorf("bound as %+v, %v", c, err)
	}
	h.tick(1)
	if clients, err := h.registry.HeldClients(t.Context(), "me", 10); err != nil || slices.Contains(clients, "gone") {
		t.Errorf("the server holds %v, %v", clients, err)
	}
}

// TestLateBindEnds checks that a bind that failed and is executed later does not stay.
func TestLateBindEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, g := gated(t)
		h.connectAll("tab")
		<-g.calls
		g.open <- errors.New("the store is away")
		h.settle()
		held := func() bool {
			clients, err := h.registry.HeldClients(t.Context(), "me", 10)
			if err != nil {
				t.Fatal(err)
			}
			return slices.Contains(clients, "tab")
		}
		if h.tick(1); held() {
			t.Error("the server holds the client after the failed bind")
		}
		// The store executes it now.
		if err := h.queue.BindClients(t.Context(), []queue.Claim{{Client: "tab", Server: "me"}})[0].Err; err != nil {
			t.Fatal(err)
		}
		time.Sleep(queue.MaxBindDelay + time.Second) // on the clock of synctest
		h.tick(1)
		if c, _, err := h.queue.Client(t.Context(), "tab"); c.Server != "" || err != nil {
			t.Errorf("bound as %+v, %v", c, err)
		}
	})
}
