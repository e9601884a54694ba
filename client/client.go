package client

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"switchboard/internal/wire"
)

// Client is one logical connection. Its methods may be called from any goroutine, before
// Run too: they then wait for the first connection, as long as their ctx allows.
type Client struct {
	opts      Options
	endpoints []endpoint
	netDial   netDial
	inbox     *inbox
	delivered chan struct{} // closed when no callback runs any more

	instance string // tells this Client from others under the same client id

	mu       sync.Mutex // guards the fields below
	attempt  int64      // counts the connects
	started  bool
	stopped  error    // why Run has ended
	session  *session // the connection in force, from `connected` to its end
	id       string   // the client id in force, "" before the first `connected`
	secret   string   // by which a client without a user gets that id again
	token    token
	nextRef  int64
	calls    map[int64]*call          // by ref
	subs     map[string]*subscription // what is wanted, AllChannel included
	queue    position                 // last id seen of the client queue
	handled  int64                    // last id of the client queue that OnMessage is done with
	epoch    int                      // counts the resets of the client queue
	queueGap Gap                      // the last one told of the client queue
}

// New makes a Client; nothing happens on the network before Run.
func New(opts Options) (*Client, error) {
	opts = opts.withDefaults()
	if err := opts.check(); err != nil {
		return nil, fmt.Errorf("client options: %w", err)
	}
	c := &Client{
		opts:      opts,
		netDial:   (&net.Dialer{}).DialContext,
		inbox:     newInbox(),
		delivered: make(chan struct{}),
		instance:  crand.Text()[:8],
		secret:    cmp.Or(opts.Secret, crand.Text()), // drawn here, so that an answer that is lost does not cost the id
		token:     token{value: opts.Token},
		calls:     map[int64]*call{},
		// A reply can outlive the process that asked for it and reach the next one under the
		// same client id: a random start keeps their refs apart. Below 2^52, so that it
		// stays exact in a double for 2^52 calls.
		nextRef: rand.Int64N(1 << 52),
		subs:    map[string]*subscription{wire.AllChannel: {channel: wire.AllChannel}},
	}
	for _, raw := range opts.URLs {
		e, err := parseEndpoint(raw)
		if err != nil {
			return nil, fmt.Errorf("client options: %w", err)
		}
		c.endpoints = append(c.endpoints, e)
	}
	return c, nil
}

// Identity returns the client id in force, user included, and the secret by which a client without
// a user gets that id again. Give both to the next Options if the queue shall outlive the
// process. The id is "" before the first connection, and secret is "" for a client with a user.
func (c *Client) Identity() (client, secret string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wire.UserOf(c.id) == "" {
		secret = c.secret
	}
	return c.id, secret
}

// Run connects, and connects again, until ctx ends (it returns nil) or the broker says
// not to come back (a *ClosedError). It runs once in the life of a Client. Callbacks run
// only while Run does.
func (c *Client) Run(ctx context.Context) error {
	c.mu.Lock()
	again := c.started
	c.started = true
	c.mu.Unlock()
	if again {
		return errors.New("client: Run was called before")
	}
	go func() {
		defer close(c.delivered)
		c.deliver(ctx)
	}()
	err := c.connectForever(ctx)
	c.stop(err)
	c.inbox.close()
	<-c.delivered
	if c.opts.OnState != nil {
		c.opts.OnState(State{Phase: Closed, Err: err, Final: true})
	}
	return err
}

// connectForever holds one connection after another. It returns nil when ctx ends.
func (c *Client) connectForever(ctx context.Context) error {
	wait := backoff{min: c.opts.BackoffMin, max: c.opts.BackoffMax}
	next := rand.IntN(len(c.endpoints))
	for {
		e := c.endpoints[next%len(c.endpoints)]
		c.announce(State{Phase: Connecting, URL: e.raw})
		up, err := c.connection(ctx, e)
		if ctx.Err() != nil {
			return nil
		}
		if up >= steady {
			wait.reset()
		}
		if err = c.afterClose(err); final(err) {
			return err
		}
		if moves(err) {
			next++
		}
		delay := c.delay(&wait, err)
		c.opts.Logger.Warn().Err(err).Str("url", e.raw).Dur("retry_in", delay).Msg("connection lost")
		c.announce(State{Phase: Closed, URL: e.raw, Err: err, RetryIn: delay})
		if !pause(ctx, delay) {
			return nil
		}
	}
}

// final reports whether no further attempt is due.
func final(err error) bool {
	closed, ok := errors.AsType[*ClosedError](err)
	return ok && !closed.Reconnect
}

// moves reports whether the next attempt goes to the next instance: not when the close
// was about this client rather than about the instance.
func moves(err error) bool {
	closed, ok := errors.AsType[*ClosedError](err)
	if !ok {
		return true
	}
	switch closed.Reason {
	case wire.CloseExpired, wire.CloseUnauthorized, wire.CloseSlow, wire.CloseIdle:
		return false
	}
	return true
}

// delay is what the broker asks for, which it has spread over its clients, else a draw.
// The draw counts as a failure either way.
func (c *Client) delay(wait *backoff, err error) time.Duration {
	drawn := wait.next()
	if closed, ok := errors.AsType[*ClosedError](err); ok && closed.After > 0 {
		return closed.After
	}
	return drawn
}

// announce queues a state for OnState, behind the messages that came before it.
func (c *Client) announce(s State) {
	if c.opts.OnState != nil {
		c.inbox.put(item{do: func() { c.opts.OnState(s) }})
	}
}

// stop fails what still waits for an answer.
func (c *Client) stop(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = ErrStopped
	if err != nil {
		c.stopped = fmt.Errorf("%w: %w", ErrStopped, err)
	}
	for _, call := range c.calls {
		c.resolveLocked(call, wire.Event{}, c.stopped)
	}
}
