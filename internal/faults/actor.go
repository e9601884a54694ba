package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"switchboard/client"
)

const (
	slowEvery   = 40 // messages between two pauses of a slow client
	slowPause   = 700 * time.Millisecond
	backoffMin  = 100 * time.Millisecond
	backoffMax  = 2 * time.Second
	restlessFor = 4 * time.Second // between two cuts, on average
)

// actor is one client at work; what it sees goes into the book.
type actor struct {
	member
	book   *book
	client *client.Client
	tap    *tap // nil for most
	leave  context.CancelFunc
	ended  chan struct{}
	err    error // why it ended by itself, valid when ended is closed

	mu     sync.Mutex // guards server
	server string     // where it is connected, "" while nowhere

	seen int // belongs to the callback
}

// newActor makes a client that goes to these brokers, from a different one each.
func newActor(m member, i int, b *book, brokers []*instance) (*actor, error) {
	a := &actor{member: m, book: b, ended: make(chan struct{})}
	var addrs []string
	for k := range brokers {
		addrs = append(addrs, m.knock.addr(brokers[(i+k)%len(brokers)]))
	}
	if m.tapped() {
		var err error
		if a.tap, err = newTap(addrs, 0); err != nil {
			return nil, err
		}
		addrs = []string{a.tap.addr()}
	}
	var urls []string
	for _, addr := range addrs {
		urls = append(urls, m.knock.url(addr))
	}
	var err error
	a.client, err = client.New(client.Options{
		URLs: urls, Client: m.client, User: m.user, BackoffMin: backoffMin, BackoffMax: backoffMax,
		OnMessage: a.message, OnGap: a.gap, OnState: a.state,
	})
	return a, err
}

func (k knock) addr(b *instance) string {
	if k == wsHTTP {
		return b.http
	}
	return b.tcp
}

func (k knock) url(addr string) string {
	if k == rawTCP {
		return "tcp://" + addr
	}
	return "ws://" + addr + "/ws"
}

// start runs the client until leave is called; it returns at once.
func (a *actor) start(ctx context.Context) {
	ctx, a.leave = context.WithCancel(ctx)
	go func() {
		defer close(a.ended)
		a.err = a.client.Run(ctx)
	}()
}

// ready subscribes, and confirms when all is answered. A refusal, as on a machine that is busy with
// hundreds of clients at once, is no reason to give up.
func (a *actor) ready(ctx context.Context) error {
	for _, channel := range a.channels {
		if err := retry(ctx, func() error {
			_, err := a.client.Subscribe(ctx, channel, client.SubscribeOptions{})
			return err
		}); err != nil {
			return fmt.Errorf("%s: %w", a.member.client, err)
		}
	}
	a.book.confirm(a.member.client, time.Now())
	return nil
}

// end has the client leave and waits until it has.
func (a *actor) end() {
	if a.leave != nil {
		a.leave()
		<-a.ended
	}
	if a.tap != nil {
		a.tap.close()
	}
}

func (a *actor) message(m client.Message) {
	at := time.Now()
	var p payload
	if err := json.Unmarshal(m.Data, &p); err != nil {
		p.Stream = "malformed"
	}
	a.book.message(a.member.client, m.Channel, m.ID, item{p.Stream, p.N}, at)
	if a.seen++; a.role == slow && a.seen%slowEvery == 0 {
		pause(context.Background(), slowPause)
	}
}

func (a *actor) gap(g client.Gap) {
	a.book.gap(a.member.client, gap{queue: g.Channel, after: g.After, id: g.ID, at: time.Now()})
}

func (a *actor) state(s client.State) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.server = s.Server // "" but for Connected
}

// at is the id of the server that the client is connected to, "" for none.
func (a *actor) at() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.server
}
