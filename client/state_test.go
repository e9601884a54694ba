package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/client"
	"switchboard/kit/kittest"
)

// These tests run clients with a broker in memory.

// proxy forwards connections to a broker, and breaks them on demand.
type proxy struct {
	net.Listener
	target string
	wg     sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	down  bool       // new connections break at once
	conns []net.Conn
}

// startProxy returns a proxy for the broker at url, and the URL of the proxy.
func startProxy(t *testing.T, url string) (*proxy, string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSuffix(strings.TrimPrefix(url, "ws://"), "/ws")
	p := &proxy{Listener: ln, target: address}
	p.wg.Go(p.serve)
	t.Cleanup(func() {
		ln.Close()
		p.setDown(true)
		p.wg.Wait()
	})
	return p, "ws://" + ln.Addr().String() + "/ws"
}

func (p *proxy) serve() {
	for {
		near, err := p.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.target)
		if err != nil {
			near.Close()
			continue
		}
		p.mu.Lock()
		if p.down {
			near.Close()
			far.Close()
		}
		p.conns = append(p.conns, near, far)
		p.mu.Unlock()
		for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
			p.wg.Go(func() {
				_, _ = io.Copy(pair[0], pair[1])
				near.Close()
				far.Close()
			})
		}
	}
}

// setDown breaks all connections, until it is called with false.
func (p *proxy) setDown(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	for _, nc := range p.conns {
		nc.Close()
	}
	p.conns = nil
}

// device is a client that is subscribed to room:1, and what its callbacks have reported.
type device struct {
	*client.Client
	t      *testing.T
	events chan string
}

// startDevice runs a client and waits until its fields have arrived.
func startDevice(t *testing.T, url, name string) *device {
	d := &device{t: t, events: make(chan string, 256)}
	d.start(client.Options{
		URLs: []string{url}, Client: name, BackoffMin: time.Millisecond, BackoffMax: 20 * time.Millisecond,
		OnFields:  func(s client.Snapshot) { d.events <- "fields" + fieldsText(s) },
		OnMessage: func(m client.Message) { d.events <- messageText(m) },
		OnGap:     func(g client.Gap) { d.events <- fmt.Sprint("gap ", g) },
		OnHere:    func(h client.Here) { d.events <- fmt.Sprintf("here %s %s", h.Client, h.Data) },
	})
	return d
}

// start runs the client until the end of the test, and subscribes it to room:1.
func (d *device) start(o client.Options) {
	t := d.t
	t.Helper()
	var err error
	if d.Client, err = client.New(o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if _, err := d.Subscribe(t.Context(), "room:1", client.SubscribeOptions{State: true, Presence: true}); err != nil {
		t.Fatal(err)
	}
}

// want waits for the next event.
func (d *device) want(want string) {
	d.t.Helper()
	select {
	case got := <-d.events:
		if got != want {
			d.t.Fatalf("got %q, want %q", got, want)
		}
	case <-time.After(20 * time.Second): // a safety net
		d.t.Fatalf("%q has not arrived", want)
	}
}

func (d *device) update(clauses ...client.Clause) client.Updated {
	d.t.Helper()
	done, err := d.Update(d.t.Context(), "room:1", clauses...)
	if err != nil {
		d.t.Fatal(err)
	}
	return done
}

func fieldsText(s client.Snapshot) (text string) {
	for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
		text += fmt.Sprintf(" %s=%s", name, s.Fields[name].Value)
	}
	return text
}

func messageText(m client.Message) string {
	text := "message"
	if m.Data != nil {
		text += " " + string(m.Data)
	}
	c := m.Changes
	if c == nil {
		return text
	}
	for _, name := range slices.Sorted(maps.Keys(c.Gone)) {
		text += fmt.Sprintf(" %s:%s", name, c.Gone[name])
	}
	for _, name := range c.Deleted {
		text += " -" + name
	}
	for _, name := range slices.Sorted(maps.Keys(c.Set)) {
		text += fmt.Sprintf(" %s=%s", name, c.Set[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.Away)) {
		text += fmt.Sprintf(" %s:away", name)
	}
	for _, name := range c.Back {
		text += fmt.Sprintf(" %s:back", name)
	}
	return text
}

func TestStateWithABroker(t *testing.T) {
	url := kittest.NewMemory().Start(t, nil).URL()
	amy, bob := startDevice(t, url, "amy"), startDevice(t, url, "bob")
	amy.want("fields")
	bob.want("fields")

	first := amy.update(client.Set("seat/1", "amy"), client.Add("n", 2), client.Data("hello"), client.IfAbsent("seat/1"))
	if first.Numbers["n"] != 2 {
		t.Errorf("the result of Add is %v", first.Numbers)
	}
	for _, d := range []*device{amy, bob} {
		d.want(`message "hello" n=2 seat/1="amy"`)
	}
	_, err := bob.Update(t.Context(), "room:1", client.Set("seat/1", "bob"), client.IfAbsent("seat/1"))
	refused, ok := errors.AsType[*client.Refusal](err)
	if !ok || refused.Err.Code != client.Conflict || refused.Fields["seat/1"] == nil || refused.Fields["seat/1"].ID != first.ID {
		t.Fatalf("got %v, want a conflict with the seat of amy", err)
	}
	_, err = bob.Update(t.Context(), "room:1", client.AddWithin("n", 2, 0, 3))
	if refused, ok = errors.AsType[*client.Refusal](err); !ok || refused.Err.Code != client.OutOfRange || refused.Fields["n"] == nil || string(refused.Fields["n"].Value) != "2" {
		t.Fatalf("got %v, want a number out of range, and its value 2", err)
	}
	again := []client.Clause{client.Add("n", 1), client.Key("k")}
	if one, two := bob.update(again...), bob.update(again...); one.ID != two.ID || two.Numbers["n"] != 3 {
		t.Errorf("the results with one key are %v and %v", one, two)
	}
	bob.want("message n=3")
	bob.update(client.Del("n"), client.Set("hold", 1), client.TTL(30*time.Millisecond))
	bob.want("message -n hold=1")
	bob.want("message hold:expired")

	page, err := amy.ReadFields(t.Context(), "room:1", client.FieldsQuery{Prefix: "seat/"})
	if err != nil || fieldsText(page.Snapshot) != ` seat/1="amy"` || page.Next != "" {
		t.Errorf("a page is %+v, %v", page, err)
	}
	if fields, ok := bob.Fields("room:1"); !ok || fieldsText(fields) != ` seat/1="amy"` {
		t.Errorf("the fields of bob are %+v, %t", fields, ok)
	}
}

func TestStateOverAReconnect(t *testing.T) {
	url := kittest.NewMemory().Start(t, nil).URL()
	p, proxyURL := startProxy(t, url)
	amy, bob := startDevice(t, url, "amy"), startDevice(t, proxyURL, "bob")
	amy.want("fields")
	bob.want("fields")
	bob.update(client.Set("member/bob", 1), client.Own())
	amy.want("message member/bob=1")
	bob.want("message member/bob=1")

	p.setDown(true)
	amy.want("message member/bob:away")
	amy.update(client.Set("a", 1))
	amy.want("message a=1")
	p.setDown(false) // bob holds the state, and receives the messages that it has missed
	amy.want("message member/bob:back")
	bob.want("message member/bob:away")
	bob.want("message a=1")
	bob.want("message member/bob:back")
	if fields, _ := bob.Fields("room:1"); fieldsText(fields) != " a=1 member/bob=1" {
		t.Errorf("the fields of bob are %+v", fields)
	}
	if err := bob.Unsubscribe(t.Context(), "room:1"); err != nil {
		t.Fatal(err)
	}
	amy.want("message member/bob:left")
}

func TestHereWithABroker(t *testing.T) {
	url := kittest.NewMemory().Start(t, nil).URL()
	amy, bob := startDevice(t, url, "amy"), startDevice(t, url, "bob")
	amy.want("fields")
	bob.want("fields")
	if err := bob.ShowHere("room:1", map[string]int{"x": 4}); err != nil {
		t.Fatal(err)
	}
	amy.want(`here bob {"x":4}`)
	for m, err := range amy.Members(t.Context(), "room:1") {
		if err != nil {
			t.Fatal(err)
		}
		if m.Client == "bob" && string(m.Here) != `{"x":4}` {
			t.Errorf("the members show bob with %s", m.Here)
		}
	}
	if err := bob.ShowHere("room:1", nil); err != nil {
		t.Fatal(err)
	}
	amy.want("here bob ")
}
