package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"switchboard/broker/session"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// gate is a queue that binds when the test says so.
type gate struct {
	queue.Queue
	arrived chan []string // clients of a call, which then waits for open
	open    chan error

	mu    sync.Mutex // guards the field below
	reads int        // calls
}

func (g *gate) BindClients(ctx context.Context, claims []queue.Claim) []queue.Outcome[queue.Bound] {
	var clients []string
	for _, c := range claims {
		clients = append(clients, c.Client)
	}
	g.arrived <- clients
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
	g.reads++
	return g.Queue.ReadChannels(ctx, reads)
}

// arrive has clients connect, each of whom follows a channel of its own.
func (d *desk) arrive(clients ...string) (socks []*socket) {
	for _, client := range clients {
		sock := newSocket()
		socks = append(socks, sock)
		d.do(func() {
			to := d.Accept(d.loop, sock, nil)
			receive(to, fmt.Appendf(nil, `{"type":"connect","client":"%s","secret":"one that all here have"}`, client))
			receive(to, fmt.Appendf(nil, `{"type":"subscribe","channel":"own-%s","after":0}`, client))
		})
	}
	return socks
}

func gated(t *testing.T) (*desk, *gate) {
	g := &gate{arrived: make(chan []string, 1), open: make(chan error, 1)}
	over := func(q queue.Queue) queue.Queue { g.Queue = q; return g }
	g.open <- nil
	d := newDeskOn(t, session.Options{}, over)
	<-g.arrived
	return d, g
}

// TestComeTogether: those who come while another is bound are bound by one call, and their channels read by one more.
func TestComeTogether(t *testing.T) {
	d, g := gated(t)
	first := d.arrive("first")
	if got := <-g.arrived; !slices.Equal(got, []string{"first"}) {
		t.Fatalf("bound are %v", got)
	}
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprint("tab-", i))
	}
	socks := d.arrive(names...)
	again := d.arrive("tab-7") // in the same breath: it must wait for the other's turn, and not hold the rest up
	g.open <- nil
	if got := <-g.arrived; !slices.Equal(got, names) {
		t.Fatalf("bound together are %v", got)
	}
	g.open <- nil
	if got := <-g.arrived; !slices.Equal(got, []string{"tab-7"}) {
		t.Fatalf("bound behind them are %v", got)
	}
	for told := false; !told; { // else he is closed before he is told anything, and his channel is not bound yet
		d.do(func() { told = len(socks[7].written) > 0 })
	}
	g.open <- nil
	d.settle()
	d.do(func() {
		for i, sock := range slices.Concat(first, socks, again) {
			if len(sock.written) != 2 || sock.written[0].Type != wire.TypeConnected || sock.written[1].Type != wire.TypeSubscribed || sock.writes != 1 {
				t.Errorf("%d was told %v in %d writes", i, sock.written, sock.writes)
			}
			if gone := i == 1+7; gone != (sock.closed == wire.CloseSuperseded) {
				t.Errorf("%d was closed for %q", i, sock.closed)
			}
		}
		if g.reads != 2 {
			t.Errorf("%d calls read the channels, want 2: the last one found its own bound", g.reads)
		}
	})
}

// TestComeTogetherInVain: while the store is away each is told, and who comes when it is back is connected.
func TestComeTogetherInVain(t *testing.T) {
	d, g := gated(t)
	socks := d.arrive("a")
	<-g.arrived
	socks = append(socks, d.arrive("b", "c")...)
	for range 2 {
		g.open <- errors.New("the store is away")
	}
	<-g.arrived
	d.settle()
	d.do(func() {
		for i, sock := range socks {
			if sock.closed != wire.CloseOverloaded || len(sock.written) == 0 || sock.written[0].Code != string(wire.Unavailable) {
				t.Errorf("%d was told %v and closed for %q", i, sock.written, sock.closed)
			}
		}
	})
	g.open <- nil
	back := d.arrive("b")
	<-g.arrived
	d.settle()
	d.do(func() {
		if len(back[0].written) != 2 || back[0].written[0].Type != wire.TypeConnected {
			t.Errorf("b was told %v", back[0].written)
		}
	})
}

// TestGoneWhileOthersComeIn: who goes before it is his turn is not bound.
func TestGoneWhileOthersComeIn(t *testing.T) {
	d, g := gated(t)
	d.arrive("first")
	<-g.arrived
	d.do(func() {
		to := d.Accept(d.loop, newSocket(), nil)
		receive(to, []byte(`{"type":"connect","client":"gone"}`))
		to.Closed()
	})
	d.arrive("last")
	g.open <- nil
	if got := <-g.arrived; !slices.Equal(got, []string{"last"}) {
		t.Errorf("bound are %v", got)
	}
	g.open <- nil
	d.settle()
	if n, _ := d.Counts(); n != 3 { // the desk's own, and two
		t.Errorf("%d connections, want 3", n)
	}
}
