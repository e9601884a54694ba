package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"switchboard/broker/auth"
	"switchboard/broker/delivery"
	"switchboard/broker/hub"
	"switchboard/broker/loop"
	"switchboard/broker/peer"
	"switchboard/broker/session"
	"switchboard/broker/transport"
	"switchboard/broker/work"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// sweepTick is how often the links are asked whether hints may have been lost. With the
// second that a silent link is given, everything is read again within the sweep's 2 s.
const sweepTick = 500 * time.Millisecond

// Broker is one instance.
type Broker struct {
	opts    Options
	started time.Time
	host    string // where the others reach us; set by Run before anything needs it

	id         atomic.Pointer[string]
	live       atomic.Pointer[map[string]registry.Server]
	renewed    atomic.Int64 // ns since started of the last successful beat
	joined     atomic.Bool
	asserted   atomic.Bool // what we hold was bound since the last doubt about the store
	complained atomic.Bool // the store's absence is in the log
	draining   atomic.Bool

	pool     *work.Pool
	poller   *transport.Poller // nil when there is no TCP listener
	web      *transport.Web
	gate     *transport.Gate
	hub      *hub.Hub
	sessions *session.Manager
	pusher   *delivery.Pusher
	peers    *peer.Links // nil without a shared store
	metrics  *metrics

	addrs   atomic.Pointer[Addrs]
	serving chan struct{} // closed when all ports are open
}

// Addrs are the addresses that a running Broker listens on.
type Addrs struct{ HTTP, TCP, Peer string }

// New returns a Broker that does nothing yet. The error names the option that is wrong.
func New(opts Options) (*Broker, error) {
	opts = opts.withDefaults()
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	b := &Broker{opts: opts, started: time.Now(), pool: work.New(0), serving: make(chan struct{})}
	id := newID(opts.Name)
	b.id.Store(&id)
	b.live.Store(&map[string]registry.Server{})
	b.gate = transport.NewGate(opts.MaxConnections)
	limits := transport.Limits{Message: opts.MaxMessage, Gate: b.gate, Origin: opts.Origins.Allowed}
	// Sessions are made by the listeners, and need the listeners' loops: hence the indirection.
	accept := func(l *loop.Loop, c transport.Conn, h transport.Hello) transport.Receiver {
		return b.sessions.Accept(l, c, h)
	}
	n := runtime.GOMAXPROCS(0)
	b.web = transport.NewWeb(n, 0, limits, accept)
	b.web.Compress = opts.Compression
	loops := b.web.Loops()
	if opts.TCP != "off" {
		b.poller = transport.NewPoller(n, n, limits, accept, opts.Logger)
		loops = append(loops, b.poller.Loops()...)
	}
	b.wire(loops)
	return b, nil
}

// wire makes the parts and ties them together.
func (b *Broker) wire(loops []*loop.Loop) {
	o := b.opts
	b.metrics = newMetrics(o.Registerer, b)
	if o.Shared {
		b.peers = peer.New(peer.Options{
			Self: b.serverID, Secret: o.PeerSecret, Check: auth.NewPeerSecret(o.PeerSecret).Check,
			Handle: b.hint, Drop: o.DropHints, Logger: o.Logger,
			Metrics: peer.Metrics{
				Sent: b.metrics.hint("sent"), Missed: b.metrics.hint("missed"), Received: b.metrics.hint("received"),
			},
		})
		b.handleCalls()
	}
	b.hub = hub.New(hub.Options{
		Loops: loops, Pool: b.pool, Registry: o.Registry, Queue: o.Queue, ServerID: b.serverID,
		Logger: o.Logger, Drained: func(d time.Duration) { b.metrics.drainLag.Observe(d.Seconds()) },
	})
	b.pusher = delivery.New(delivery.Options{
		Registry: o.Registry, Queue: o.Queue, Self: b.serverID, Live: b.Live,
		Local: b.hint, Remote: b.tell, Stored: b.metrics.store,
	})
	s := session.Options{
		Hub: b.hub, Pool: b.pool, Loops: loops, Registry: o.Registry, Queue: o.Queue,
		ServerID: b.serverID, Publish: b.publish, Supersede: b.supersede,
		MayPublish: o.ClientPublish || o.Open(),
		MaxMessage: o.MaxMessage, MaxChannels: o.MaxChannels,
		Ping: o.Ping, ConnectTimeout: o.ConnectTimeout, SlowAfter: o.SlowAfter, Refresh: o.Refresh,
		Logger: o.Logger,
		Metrics: session.Metrics{
			Closed:    func(reason string) { b.metrics.closes.WithLabelValues(reason).Inc() },
			Delivered: func(n int) { b.metrics.delivered.Add(float64(n)) },
			Gap:       b.metrics.gaps.Inc,
		},
	}
	if o.Tokens != nil && !o.Tokens.Open() {
		s.Verify = b.verify
	}
	if o.Shared {
		s.RequestQueues = o.RequestQueues
	}
	b.sessions = session.New(s)
}

// publish is a client's push to a channel.
func (b *Broker) publish(ctx context.Context, channel string, data []byte) (int64, error) {
	r, err := b.pusher.ToChannel(ctx, channel, delivery.Payload{Data: data})
	return r.ID, err
}

func (b *Broker) supersede(server, client string, generation int64) {
	b.tell(server, peer.Hint{Kind: peer.Supersede, Name: client, ID: generation})
}

// verify is session.Options.Verify: why a token is bad is told to its owner, never logged.
func (b *Broker) verify(token string) (session.Identity, error) {
	claims, err := b.opts.Tokens.Verify(token)
	switch {
	case errors.Is(err, auth.ErrExpired):
		return session.Identity{}, fmt.Errorf("%w: %w", session.ErrExpired, err)
	case err != nil:
		return session.Identity{}, wire.Errorf(wire.Unauthorized, "token: %s", err.Error())
	}
	return session.Identity{User: claims.User, Expires: claims.Expires}, nil
}

// Addrs are the addresses listened on; it waits until all ports are open, or ctx ends.
func (b *Broker) Addrs(ctx context.Context) (Addrs, error) {
	select {
	case <-b.serving:
		return *b.addrs.Load(), nil
	case <-ctx.Done():
		return Addrs{}, ctx.Err()
	}
}

// ID is the server's id of now.
func (b *Broker) ID() string { return b.serverID() }

// Run serves until ctx ends, then goes down in order: new connections are turned away, the
// clients are told where to come back, bindings are taken out of the store, calls under way
// end, and the server leaves the registry. It returns nil then, and an error when a
// port could not be opened or a listener failed.
func (b *Broker) Run(ctx context.Context) error {
	servers, err := b.listen()
	if err != nil {
		return err
	}
	// The parts outlive ctx by the time that going down takes.
	parts, stop := context.WithCancel(context.Background())
	defer stop()
	group, failed := errgroup.WithContext(parts)
	for _, s := range servers {
		group.Go(func() error { return s.serve(parts) })
	}
	group.Go(func() error { return b.web.Run(parts) })
	if b.poller != nil {
		group.Go(func() error { return b.poller.Run(parts, b.addrs.Load().TCP) })
	}
	if b.peers != nil {
		group.Go(func() error { return b.peers.Run(parts) })
		group.Go(func() error { return b.sweepLoop(parts) })
	}
	group.Go(func() error { return b.beatLoop(parts) })
	group.Go(func() error { return b.tickLoop(parts) })
	go b.announce(failed)
	select {
	case <-ctx.Done():
		b.goDown(servers)
	case <-failed.Done(): // a listener is gone: what hangs on it cannot be ended in order
		b.leave()
		return context.Cause(failed)
	}
	stop()
	err = group.Wait()
	b.leave()
	return err
}

// announce closes serving when all ports are open.
func (b *Broker) announce(ctx context.Context) {
	if b.poller != nil {
		select {
		case <-b.poller.Booted():
		case <-ctx.Done():
			return
		}
	}
	a := b.addrs.Load()
	b.opts.Logger.Info().Str("http", a.HTTP).Str("tcp", a.TCP).Str("peer", a.Peer).
		Int("max_connections", b.opts.MaxConnections).Msg("listening")
	close(b.serving)
}

// goDown is the orderly end, while the parts still run.
func (b *Broker) goDown(servers []*server) {
	b.opts.Logger.Info().Msg("going down")
	b.draining.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), b.opts.DrainTime+5*time.Second)
	defer cancel()
	b.sessions.Drain(b.opts.DrainTime)
	for _, s := range servers {
		s.shutdown(ctx)
	}
	within(ctx, b.pool.Wait)
	within(ctx, func() { b.hub.UnbindAll(ctx) })
}

// within waits for f, but not longer than ctx: with the store away there is no end to it.
func within(ctx context.Context, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// leave takes the server out of the registry. When that fails its lease runs out, and a
// janitor cleans up.
func (b *Broker) leave() {
	if !b.joined.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := b.opts.Registry.Leave(ctx, b.serverID()); err != nil {
		b.opts.Logger.Warn().Err(err).Msg("could not leave; the janitor will clean up")
		return
	}
	b.opts.Logger.Info().Str("server", b.serverID()).Msg("left")
}

func (b *Broker) tickLoop(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			b.hub.Tick()
			b.sessions.Tick()
		}
	}
}

// sweepLoop has everything read again whenever hints may have been lost.
func (b *Broker) sweepLoop(ctx context.Context) error {
	tick := time.NewTicker(sweepTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if b.peers.Lost() {
				b.metrics.sweeps.Inc()
				b.hub.MarkAllDirty()
				b.sessions.MarkAllDirty()
			}
		}
	}
}

// server is one HTTP listener.
type server struct {
	http     http.Server
	listener net.Listener
}

func (s *server) serve(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { _ = s.http.Close() })()
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the HTTP listener on %s ended: %w", s.listener.Addr(), err)
	}
	return nil
}

// shutdown stops accepting and waits for the calls under way.
func (s *server) shutdown(ctx context.Context) {
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
}
