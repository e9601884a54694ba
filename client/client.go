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

// Client is one logical connection. Its methods are safe for concurrent use, also before Run: they
// then wait for the first connection, until their ctx ends.
type Client struct {
	opts      Options
	endpoints []endpoint
	netDial   netDial
	inbox     *inbox
	delivered chan struct{}  // closed when deliver has returned
	wake      chan struct{}  // one slot: the network may be back
	loads     sync.WaitGroup // the goroutines of Load

	instance string // distinguishes this Client from others with the same client id

	mu           sync.Mutex // guards the fields below
	attempt      int64      // counts the connects
	started      bool
	stopped      error    // set when Run has ended: the error for further calls
	session      *session // the current connection, from `connected` to its end
	id           string   // the current client id, "" before the first `connected`
	secret       string   // proves the ownership of an id without a user
	token        token
	nextRef      int64
	calls        map[int64]*call          // by ref
	loadCtx      context.Context          // of calls of Load; set by Run
	loading      map[string]chan struct{} // by channel: closed when the last call of Load has returned
	shown        map[string]*shown        // by channel
	subs         map[string]*subscription // all subscriptions, by channel, with AllChannel
	queue        position                 // last id seen of the client queue
	handled      int64                    // last id of the client queue that OnMessage has returned for
	epoch        int                      // grows with each reset of the client queue
	lastQueueGap Gap                      // the last gap of the client queue that was reported
	tokenIgnored bool                     // the broker has ignored a token, which was logged
}

// New returns a Client. It does not use the network before Run.
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
		wake:      make(chan struct{}, 1),
		instance:  crand.Text()[:8],
		secret:    cmp.Or(opts.Secret, crand.Text()), // drawn here, so the client keeps its id if the first answer is lost
		token:     token{value: opts.Token},
		calls:     map[int64]*call{},
		shown:     map[string]*shown{},
		loading:   map[string]chan struct{}{},
		// A reply to a dead process can reach the next process with the same client id. A random
		// start keeps their refs apart. It is below 2^52, so 2^52 more refs are exact in a double.
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

// Identity returns the current client id, with the user, and the secret that proves its
// ownership. Put both into the Options of the next process to keep the client queue. The id is ""
// before the first connection. The secret is "" for a client with a user.
func (c *Client) Identity() (client, secret string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wire.UserOf(c.id) == "" {
		secret = c.secret
	}
	return c.id, secret
}

// Run keeps the client connected. It returns nil when ctx ends, and a *ClosedError if the broker
// forbids a reconnect. Run may be called once. Callbacks run only during Run.
func (c *Client) Run(ctx context.Context) error {
	c.mu.Lock()
	if c.started {
		c.mu.Unlock()
		return errors.New("client: Run was called before")
	}
	loadCtx, cancelLoads := context.WithCancel(ctx)
	defer cancelLoads()
	c.started, c.loadCtx = true, loadCtx
	c.mu.Unlock()
	go func() {
		defer close(c.delivered)
		c.deliver(ctx)
	}()
	err := c.connectLoop(ctx)
	c.failCalls(err)
	cancelLoads()
	c.loads.Wait()
	c.inbox.close()
	<-c.delivered
	if c.opts.OnState != nil {
		c.opts.OnState(State{Phase: Closed, Err: err, Final: true})
	}
	return err
}

// connectLoop serves one connection after another. It returns nil when ctx ends.
func (c *Client) connectLoop(ctx context.Context) error {
	d := newDialer(c)
	defer d.attempts.Wait()
	tokens := newBackoff(c.opts, 1)
	for {
		token, err := c.currentToken(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			wait := tokens.next()
			c.attemptEnded("", err, wait)
			if !pause(ctx, wait) {
				return nil
			}
			continue
		}
		tokens.reset()
		opened, err := d.dial(ctx)
		if err != nil {
			return nil
		}
		s := opened.session
		c.queueConnect(s, token)
		err = s.run(ctx)
		uptime, accepted := c.detach(s)
		if ctx.Err() != nil {
			return nil
		}
		if err = c.afterClose(err); final(err) {
			return err
		}
		if accepted {
			d.lost(opened.target, uptime, !tryNextInstance(err), afterOf(err))
		} else {
			d.refused(opened.target, afterOf(err))
		}
		c.attemptEnded(opened.target.raw, err, d.retryIn())
	}
}

// attemptEnded reports the end of an attempt or a connection.
func (c *Client) attemptEnded(url string, err error, retryIn time.Duration) {
	c.opts.Logger.Warn().Err(err).Str("url", url).Dur("retry_in", retryIn).Msg("connection lost")
	c.queueState(State{Phase: Closed, URL: url, Err: err, RetryIn: retryIn})
}

// Wake tells the client that the network may be back: it connects at once, instead of after its
// delay. A delay that the broker has asked for stays. It does nothing while there is a connection.
func (c *Client) Wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == nil {
		signal(c.wake)
	}
}

// final reports whether err forbids another attempt.
func final(err error) bool {
	closed, ok := errors.AsType[*ClosedError](err)
	return ok && !closed.Reconnect
}

// tryNextInstance reports whether the next attempt goes to the next instance. It stays with this
// instance if the close was about the client.
func tryNextInstance(err error) bool {
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

// afterOf returns the delay that the broker has asked for, 0 for none.
func afterOf(err error) time.Duration {
	if closed, ok := errors.AsType[*ClosedError](err); ok {
		return closed.After
	}
	return 0
}

// queueState queues a call of OnState after the earlier messages.
func (c *Client) queueState(s State) {
	if c.opts.OnState != nil {
		c.inbox.put(item{do: func() { c.opts.OnState(s) }})
	}
}

// failCalls resolves all pending calls with an error. Later calls get the same error.
func (c *Client) failCalls(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = ErrStopped
	if err != nil {
		c.stopped = fmt.Errorf("%w: %w", ErrStopped, err)
	}
	for _, call := range c.calls {
		err := c.stopped
		if call.hasKey() && !call.sentAt.IsZero() {
			err = fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
		}
		c.resolveLocked(call, wire.Event{}, err)
	}
}
