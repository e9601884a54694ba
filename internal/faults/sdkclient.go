package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"switchboard/client"
	"switchboard/internal/state"
)

// failEvery is the interval of the messages of an inbox that a handler of client/js fails to handle
// at first. They must come again, and count once.
const failEvery = 16

// sdkPlan tells the script what a client does. Times are in ms.
type sdkPlan struct {
	Client     string   `json:"client"`
	Token      string   `json:"token"`
	URLs       []string `json:"urls"`
	Channels   []string `json:"channels"`
	State      string   `json:"state"`
	Limited    []string `json:"limited"` // prefixes of the fields with limits
	BackoffMin int64    `json:"backoffMin"`
	BackoffMax int64    `json:"backoffMax"`
	FailEvery  int      `json:"failEvery"`
	SlowEvery  int      `json:"slowEvery"` // 0 for never
	SlowTime   int64    `json:"slowTime"`
}

// sdkEvent is an event of a client: connected (with Server), disconnected, ready (all subscriptions
// are confirmed), message, erase (with the ID of the erased message), gap, pages and change (of the
// state, with the fields that have limits), held (with all fields), failed, and left.
type sdkEvent struct {
	Client, Event string
	Server        string
	Channel       string
	ID, After     int64
	Stream        string
	N             int
	Away, Gone    []string
	Fields        json.RawMessage
	Detail        string
}

// sdkClient is a client of client/js.
type sdkClient struct {
	client  *testClient
	process *sdkProcess
	urls    []string
	ready   chan struct{} // closed when all subscriptions were confirmed
	left    chan struct{} // closed when it has ended

	connected bool // it has been; used by handle only

	mu     sync.Mutex // guards the fields below
	leaves bool       // it has received the command leave
	err    error      // the first failure
	fields map[string]state.Shown
}

func newSDKClient(c *testClient, p *sdkProcess, urls []string) *sdkClient {
	s := &sdkClient{client: c, process: p, urls: urls, ready: make(chan struct{}), left: make(chan struct{})}
	p.cond.Change(func() { p.clients[c.clientSpec.client] = s })
	return s
}

// run starts the client, and ends it when ctx ends.
func (s *sdkClient) run(ctx context.Context) error {
	spec := s.client.clientSpec
	plan := sdkPlan{
		Client: spec.client, Token: tokenOf(spec.user), URLs: s.urls, Channels: spec.channels, State: spec.state,
		Limited: []string{seatGroup, countGroup, seatLimitField}, BackoffMin: backoffMin.Milliseconds(), BackoffMax: backoffMax.Milliseconds(), FailEvery: failEvery,
	}
	if spec.role == slow {
		plan.SlowEvery, plan.SlowTime = slowCallbackEvery, slowCallbackTime.Milliseconds()
	}
	if err := s.process.send("start", plan); err != nil {
		return err
	}
	select {
	case <-s.left:
	case <-ctx.Done():
		s.update(func() { s.leaves = true })
		if err := s.process.send("leave", spec.client); err != nil {
			return err
		}
		select {
		case <-s.left:
		case <-s.process.exited:
		}
	case <-s.process.exited:
		s.fail(errors.New("node has ended"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// reload replaces the client by another one with its storage, as the reload of a page does.
func (s *sdkClient) reload() {
	if err := s.process.send("reload", s.client.clientSpec.client); err != nil {
		s.fail(err)
	}
}

// awaitReady waits until all subscriptions were confirmed.
func (s *sdkClient) awaitReady(ctx context.Context) error {
	select {
	case <-s.ready:
		return nil
	case <-s.client.ended:
		return fmt.Errorf("the client in JavaScript ended: %w", s.client.err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *sdkClient) update(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// fail records a failure.
func (s *sdkClient) fail(err error) {
	s.update(func() {
		if s.err == nil {
			s.err = err
		}
	})
}

// held returns the fields that the client last reported.
func (s *sdkClient) held() map[string]state.Shown {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fields
}

// handle records an event.
func (s *sdkClient) handle(e sdkEvent) {
	at, c := time.Now(), s.client
	switch e.Event {
	case "connected":
		if s.connected {
			c.journal.clientResumed(c.listener)
		}
		s.connected = true
		c.onConnection(e.Server)
	case "disconnected":
		c.onConnection("")
	case "ready":
		c.journal.clientReady(e.Client, c.listener, at)
		close(s.ready)
	case "message":
		c.journal.message(e.Client, e.Channel, e.ID, item{e.Stream, e.N}, at)
	case "erase":
		c.onErase(client.Erased{Channel: e.Channel, ID: e.ID})
	case "gap":
		c.onGap(client.Gap{Channel: e.Channel, After: e.After, ID: e.ID})
	case "pages":
		c.states.pages(e.Client, e.Channel, e.ID, s.parse(e.Fields), at)
	case "change":
		c.states.message(e.Client, e.Channel, e.ID, e.Away, e.Gone, s.parse(e.Fields), at)
	case "held":
		fields := s.parse(e.Fields)
		s.update(func() { s.fields = fields })
		s.process.cond.Change(func() { s.process.held-- })
	case "left":
		s.update(func() {
			if !s.leaves {
				s.err = fmt.Errorf("the client in JavaScript was closed: %s", e.Detail)
			}
		})
		close(s.left)
	default:
		s.fail(fmt.Errorf("the client in JavaScript %s %s: %s", e.Event, e.Channel, e.Detail))
	}
}

// parse parses fields.
func (s *sdkClient) parse(text json.RawMessage) map[string]state.Shown {
	parsed, err := state.ParseFields(text)
	if err != nil {
		s.fail(err)
	}
	fields := make(map[string]state.Shown, len(parsed))
	for name, f := range parsed {
		fields[name] = *f
	}
	return fields
}
