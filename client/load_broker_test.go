package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/client"
	"switchboard/client/backend"
	"switchboard/internal/await"
	"switchboard/kit/kittest"
	"switchboard/queue"
)

// number is a database with one row. Each change adds 1 and publishes the new number.
type number struct {
	broker *backend.Client
	n      atomic.Int64
}

func (d *number) change(t *testing.T, times int) {
	t.Helper()
	var pushes []backend.Push
	for range times { // first the commit, then the push
		pushes = append(pushes, backend.Push{Channel: "number", Data: d.n.Add(1)})
	}
	if _, err := d.broker.Batch(t.Context(), pushes); err != nil {
		t.Fatal(err)
	}
}

// page shows the number. It fails the test if a change is missing between two calls.
type page struct {
	t      *testing.T
	data   *number
	client *client.Client
	shown  atomic.Int64
	gaps   atomic.Int64
	calls  atomic.Int64
	failed atomic.Int64
}

var errDatabase = errors.New("the database is down")

// load fails three times of four.
func (p *page) load(ctx context.Context) (client.Loaded, error) {
	if p.calls.Add(1)%4 != 0 {
		return client.Loaded{}, errDatabase
	}
	channel, err := p.data.broker.Channel(ctx, "number") // first the position, then the row
	n := p.data.n.Load()
	return client.Loaded{After: &channel.ID, Apply: func() { p.shown.Store(n) }}, err
}

func (p *page) onMessage(m client.Message) {
	var n int64
	if err := json.Unmarshal(m.Data, &n); err != nil {
		p.t.Error(err)
	}
	switch before := p.shown.Load(); {
	case n > before+1:
		p.t.Errorf("the change after %d was %d", before, n)
	case n == before+1: // else the row had the change before its message
		p.shown.Store(n)
	}
}

func (p *page) subscribe() {
	p.t.Helper()
	if _, err := p.client.Subscribe(p.t.Context(), "number", client.SubscribeOptions{Load: p.load}); err != nil {
		p.t.Error(err)
	}
}

// link relays connections to a broker.
type link struct {
	listener net.Listener
	broker   string

	mu    sync.Mutex // guards the fields below
	down  bool
	conns []net.Conn
}

func startLink(t *testing.T, broker string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{listener: listener, broker: broker}
	t.Cleanup(func() {
		_ = listener.Close()
		l.setDown(true)
	})
	go l.accept()
	return l
}

func (l *link) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", l.broker)
		l.mu.Lock()
		if err != nil || l.down {
			_ = near.Close()
			if err == nil {
				_ = far.Close()
			}
		} else {
			l.conns = append(l.conns, near, far)
			go relay(near, far)
			go relay(far, near)
		}
		l.mu.Unlock()
	}
}

func relay(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_, _ = to.Close(), from.Close()
}

// setDown ends all connections, and refuses new ones while it is down.
func (l *link) setDown(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

// TestLoadWithABroker changes a database while pages lose their connections, for so long that
// messages are gone. Their loads fail, and their subscriptions end and begin. No page misses a
// change.
func TestLoadWithABroker(t *testing.T) {
	b := kittest.NewMemoryWith(queue.Options{ChannelCap: 20}).Start(t, nil)
	l := startLink(t, b.TCP)
	push, err := backend.New(backend.Options{URLs: []string{"http://" + b.HTTP}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(push.Close)
	data := &number{broker: push}
	var pages []*page
	for range 4 {
		p := &page{t: t, data: data}
		p.client = b.Connect(t, "", func(o *client.Options) {
			o.URLs, o.Client = []string{"tcp://" + l.listener.Addr().String()}, ""
			o.BackoffMin, o.BackoffMax = time.Millisecond, 10*time.Millisecond
			o.OnMessage = p.onMessage
			o.OnGap = func(client.Gap) { p.gaps.Add(1) }
			o.OnLoadError = func(_ string, err error) {
				if p.failed.Add(1); !errors.Is(err, errDatabase) {
					t.Error(err)
				}
			}
		})
		p.subscribe()
		pages = append(pages, p)
	}
	awaitAll := func() {
		t.Helper()
		for _, p := range pages {
			await.True(t, "the page shows the number", func() bool { return p.shown.Load() == data.n.Load() })
		}
	}
	for round := range 10 {
		for range 30 {
			data.change(t, 1)
		}
		switch round % 3 {
		case 0:
			awaitAll()
			l.setDown(true)
			data.change(t, 800) // more than the queue and the broker keep
			l.setDown(false)
			awaitAll()
		case 1:
			l.setDown(false)
		case 2:
			for _, p := range pages {
				if err := p.client.Unsubscribe(t.Context(), "number"); err != nil {
					t.Error(err)
				}
				p.subscribe()
			}
		}
	}
	data.change(t, 1)
	awaitAll()
	for i, p := range pages {
		if p.gaps.Load() == 0 || p.failed.Load() == 0 {
			t.Errorf("page %d had %d gaps, and %d loads have failed", i, p.gaps.Load(), p.failed.Load())
		}
	}
}

// TestManyMessagesWithABroker publishes more during Load than may wait for it. All of it follows.
func TestManyMessagesWithABroker(t *testing.T) {
	b := kittest.NewMemory().Start(t, nil)
	begun, finish := make(chan struct{}), make(chan struct{})
	const n = 100
	data := strings.Repeat("x", 1<<15)
	var ids, pushed []int64
	var other int
	done, otherDone := make(chan struct{}), make(chan struct{})
	c := b.Connect(t, "", func(o *client.Options) {
		o.OnGap = func(g client.Gap) { t.Errorf("%+v", g) }
		o.OnMessage = func(m client.Message) {
			if m.Channel == "other" {
				if other++; other == n {
					close(otherDone)
				}
				return
			}
			if ids = append(ids, m.ID); len(ids) == n {
				close(done)
			}
		}
	})
	_, err := c.Subscribe(t.Context(), "c", client.SubscribeOptions{Load: func(context.Context) (client.Loaded, error) {
		close(begun)
		<-finish
		return client.Loaded{}, nil
	}})
	if err == nil {
		_, err = c.Subscribe(t.Context(), "other", client.SubscribeOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	push, err := backend.New(backend.Options{URLs: []string{"http://" + b.HTTP}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(push.Close)
	for range n {
		for _, channel := range []string{"c", "other"} {
			results, err := push.Push(t.Context(), backend.Push{Channel: channel, Data: data})
			if err != nil {
				t.Fatal(err)
			}
			if channel == "c" {
				pushed = append(pushed, results[0].ID)
			}
		}
	}
	<-otherDone // the other channel has not waited
	close(finish)
	<-done
	if !slices.Equal(ids, pushed) {
		t.Fatalf("received %v, want %v", ids, pushed)
	}
}
