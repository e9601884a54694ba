package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"switchboard/client"
	"switchboard/internal/await"
	"switchboard/internal/state"
	"switchboard/internal/testbed"
)

const (
	slowCallbackEvery     = 40 // a slow client's OnMessage blocks after this many messages
	slowCallbackTime      = 700 * time.Millisecond
	backoffMin            = 100 * time.Millisecond
	backoffMax            = 2 * time.Second
	meanReconnectInterval = 4 * time.Second // mean time between two cuts of a reconnecting client
)

// testClient runs one client and records in the journal what it receives. The client is one of
// package client or of client/js, or an event stream.
type testClient struct {
	clientSpec
	journal *journal
	states  *stateJournal  // used with a state only
	durable bool           // updates of the state are durable
	conn    *client.Client // nil over sse and for javaScript
	stream  *eventStream   // only over sse
	sdk     *sdkClient     // only for javaScript
	link    *clientLink    // nil for most
	cancel  context.CancelFunc
	ended   chan struct{}
	err     error // why it ended by itself, valid when ended is closed

	mu       sync.Mutex // guards serverID
	serverID string     // server that it is connected to, "" while disconnected

	received int // used by onMessage only
}

// newTestClient returns a client that may connect to all brokers. Client i tries broker i first; a
// client of client/js, which runs in the process, tries a random one.
func newTestClient(spec clientSpec, i int, j *journal, brokers []*testbed.Broker, sdk *sdkProcess) (*testClient, error) {
	c := &testClient{clientSpec: spec, journal: j, ended: make(chan struct{})}
	var addrs []string
	for k := range brokers {
		addrs = append(addrs, spec.listener.address(brokers[(i+k)%len(brokers)]))
	}
	if spec.hasLink() {
		var err error
		if c.link, err = newClientLink(addrs, 0); err != nil {
			return nil, err
		}
		addrs = []string{c.link.addr()}
	}
	if spec.listener == sse {
		c.stream = newEventStream(c, addrs)
		return c, nil
	}
	var urls []string
	for _, addr := range addrs {
		urls = append(urls, spec.listener.url(addr))
	}
	if spec.listener == javaScript {
		c.sdk = newSDKClient(c, sdk, urls)
		return c, nil
	}
	var err error
	c.conn, err = client.New(client.Options{
		URLs: urls, Client: spec.client, Token: tokenOf(spec.user), BackoffMin: backoffMin, BackoffMax: backoffMax,
		OnMessage: c.onMessage, OnErase: c.onErase, OnFields: c.onFields, OnGap: c.onGap, OnState: c.onState,
	})
	return c, err
}

func (l listener) address(b *testbed.Broker) string {
	if l == wsHTTP || l == sse || l == javaScript {
		return b.HTTP
	}
	return b.TCP
}

func (l listener) url(addr string) string {
	if l == rawTCP {
		return "tcp://" + addr
	}
	return "ws://" + addr + "/ws"
}

// start starts the client. It returns at once; stop ends the client.
func (c *testClient) start(ctx context.Context) {
	ctx, c.cancel = context.WithCancel(ctx)
	go func() {
		defer close(c.ended)
		switch {
		case c.stream != nil:
			c.err = c.stream.run(ctx)
		case c.sdk != nil:
			c.err = c.sdk.run(ctx)
		default:
			c.err = c.conn.Run(ctx)
		}
	}()
}

// subscribe subscribes to the client's channels and marks the client as ready. It retries refused
// subscriptions, which happen when hundreds of clients connect at once on a busy machine.
func (c *testClient) subscribe(ctx context.Context) error {
	if c.stream != nil { // its URL names the channels
		if err := c.stream.awaitReady(ctx); err != nil {
			return fmt.Errorf("%s: %w", c.clientSpec.client, err)
		}
		c.journal.clientReady(c.clientSpec.client, c.listener, time.Now())
		return nil
	}
	if c.sdk != nil { // its plan names the channels, and it has recorded that it is ready
		if err := c.sdk.awaitReady(ctx); err != nil {
			return fmt.Errorf("%s: %w", c.clientSpec.client, err)
		}
		return nil
	}
	for _, channel := range c.channels {
		if err := await.Success(ctx, func() error {
			_, err := c.conn.Subscribe(ctx, channel, client.SubscribeOptions{State: channel == c.state})
			return err
		}); err != nil {
			return fmt.Errorf("%s: %w", c.clientSpec.client, err)
		}
	}
	c.journal.clientReady(c.clientSpec.client, c.listener, time.Now())
	return nil
}

// stop disconnects the client and waits until it has ended.
func (c *testClient) stop() {
	if c.cancel != nil {
		c.cancel()
		<-c.ended
	}
	if c.link != nil {
		c.link.close()
	}
}

func (c *testClient) onMessage(m client.Message) {
	at := time.Now()
	if m.Changes != nil && m.Data == nil && m.Channel == c.state {
		c.onChanges(m, at)
		return
	}
	var p payload
	if err := json.Unmarshal(m.Data, &p); err != nil {
		p.Stream = "malformed"
	}
	c.journal.message(c.clientSpec.client, m.Channel, m.ID, item{p.Stream, p.N}, at)
	if c.received++; c.role == slow && c.received%slowCallbackEvery == 0 {
		_ = await.Pause(context.Background(), slowCallbackTime)
	}
}

func (c *testClient) onErase(e client.Erased) {
	c.journal.reported(c.clientSpec.client, messageKey{e.Channel, e.ID})
}

// onChanges records a message that changes fields.
func (c *testClient) onChanges(m client.Message, at time.Time) {
	held, _ := c.conn.Fields(m.Channel)
	away, gone := slices.Collect(maps.Keys(m.Changes.Away)), slices.Collect(maps.Keys(m.Changes.Gone))
	c.states.message(c.clientSpec.client, m.Channel, m.ID, away, gone, shownFields(held), at)
}

func (c *testClient) onFields(s client.Snapshot) {
	c.states.pages(c.clientSpec.client, s.Channel, s.ID, shownFields(s), time.Now())
}

func (c *testClient) onGap(g client.Gap) {
	record := gap{queue: g.Channel, after: g.After, id: g.ID, at: time.Now()}
	c.journal.gap(c.clientSpec.client, record)
	if g.Channel != "" && g.Channel == c.state {
		c.states.gap(c.clientSpec.client, record)
	}
}

func (c *testClient) onState(s client.State) { c.onConnection(s.Server) }

// onConnection records that the client is connected to a server, "" for none.
func (c *testClient) onConnection(server string) {
	c.setServer(server)
	if c.state != "" {
		c.states.connected(c.clientSpec.client, c.state, server, time.Now())
	}
}

// fields returns the fields of its state that the client holds. A client of client/js has reported
// them, see sdkProcess.readHeld.
func (c *testClient) fields() map[string]state.Shown {
	if c.sdk != nil {
		return c.sdk.held()
	}
	held, _ := c.conn.Fields(c.state)
	return shownFields(held)
}

// setServer records the server that the client is connected to, "" for none.
func (c *testClient) setServer(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serverID = id
}

// connectedTo returns the id of the server that the client is connected to, "" for none.
func (c *testClient) connectedTo() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.serverID
}
