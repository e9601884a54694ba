package broker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"switchboard/broker/auth"
	"switchboard/broker/delivery"
	"switchboard/broker/hook"
	"switchboard/broker/hub"
	"switchboard/broker/limit"
	"switchboard/broker/loop"
	"switchboard/broker/peer"
	"switchboard/broker/presence"
	"switchboard/broker/session"
	"switchboard/broker/transport"
	"switchboard/broker/work"
	"switchboard/internal/loglimit"
	"switchboard/registry"
)

// confirmTimeout bounds the call about one message that the store seems to have lost.
const confirmTimeout = 5 * time.Second

// Broker is one instance.
type Broker struct {
	opts    Options
	started time.Time
	host    string // where the others reach us; set by Run before anything needs it

	id         atomic.Pointer[string]
	live       atomic.Pointer[map[string]registry.Server]
	renewed    atomic.Int64 // ns since started of the last successful beat
	renewing   atomic.Int64 // ns since started, when the last successful renewal of the lease began
	joined     atomic.Bool
	doubts     atomic.Int64 // times that the store may have forgotten what we hold
	settled    atomic.Int64 // the doubt up to which all was bound again
	asserting  atomic.Bool  // binding again is under way
	complained atomic.Bool  // the store's absence is in the log
	draining   atomic.Bool

	pool     *work.Pool
	poller   *transport.Poller // nil when there is no TCP listener
	web      *transport.Web
	gate     *transport.Gate
	places   *limit.Addresses
	hub      *hub.Hub
	sessions *session.Manager
	pusher   *delivery.Pusher
	presence *presence.Presence
	peers    *peer.Links // nil without a shared store
	metrics  *metrics
	doors    doors
	hooks    *hook.Hooks                              // nil for none
	asking   *work.Pool                               // where they are asked; nil without
	mute     struct{ connect, subscribe atomic.Bool } // the hook did not answer, and that is in the log
	probe    *probe

	limited *loglimit.Limit
	log     zerolog.Logger // repeated warnings are counted: for what fails once per call while the store is away

	background sync.WaitGroup // what Run waits for besides its parts

	addrs   Addrs         // complete, and not changed any more, once serving is closed
	serving chan struct{} // closed when all ports are open
}

// Addrs are the addresses that a running Broker listens on.
type Addrs struct{ HTTP, TCP, Peer, Probes, Pprof string }

// MarshalZerologObject implements zerolog.LogObjectMarshaler: the ports that are open, by the names
// of their settings.
func (a Addrs) MarshalZerologObject(e *zerolog.Event) {
	for _, port := range []struct{ name, addr string }{
		{"http", a.HTTP}, {"tcp", a.TCP}, {"peer", a.Peer}, {"probes", a.Probes}, {"pprof", a.Pprof},
	} {
		if port.addr != "" {
			e.Str(port.name, port.addr)
		}
	}
}

// New returns a Broker that does nothing yet. The error names the option that is wrong.
func New(opts Options) (*Broker, error) {
	opts = opts.withDefaults()
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	b := &Broker{opts: opts, started: time.Now(), pool: work.New(0), serving: make(chan struct{})}
	b.limited = loglimit.New(opts.Logger, loglimit.Every)
	b.log = b.limited.Logger()
	id := newID(opts.Name)
	if o := opts.Hooks; o.Enabled() {
		o.Agent = "switchboard/" + opts.Version
		hooks, err := hook.New(o)
		if err != nil {
			return nil, err
		}
		b.hooks, b.asking = hooks, work.New(hooks.Concurrency())
	}
	b.id.Store(&id)
	b.live.Store(&map[string]registry.Server{})
	b.doubts.Store(1) // nothing is bound yet
	b.gate = transport.NewGate(opts.MaxConnections)
	b.gate.Evicted = b.evicted
	b.places = limit.NewAddresses(limit.AddressOptions{
		Connections: opts.AddressConnections, Rate: opts.AddressRate, Proxies: opts.Proxies,
		Refused: func(what string) { b.metrics.refusals.WithLabelValues(what).Inc() },
	})
	limits := transport.Limits{
		Message: opts.MaxMessage, First: transport.MaxFirst, Gate: b.gate, Addresses: b.places, Handshake: opts.ConnectTimeout,
		Host: opts.refuseHost(), Origin: opts.Origins.Allowed,
	}
	// Sessions are made by the listeners, and need the listeners' loops: hence the indirection.
	accept := func(l *loop.Loop, c transport.Conn, h transport.Hello) transport.Receiver {
		return b.sessions.Accept(l, c, h)
	}
	n := opts.Loops
	b.web = transport.NewWeb(n, 0, limits, accept)
	b.web.Compress = opts.Compression
	loops := b.web.Loops()
	if opts.TCP != "off" {
		b.poller = transport.NewPoller(n, n, limits, accept, opts.Logger)
		b.web.Poller = b.poller
		loops = append(loops, b.poller.Loops()...)
	}
	b.wire(loops)
	b.probe = newProbe(b)
	return b, nil
}

// wire makes the parts and ties them together.
func (b *Broker) wire(loops []*loop.Loop) {
	o := b.opts
	b.doors.pushes = limit.PerSecond(o.PushRate)
	b.doors.hang(o)
	b.metrics = newMetrics(o.Registerer, b)
	if o.Shared {
		secret, _ := auth.NewPeerSecret(o.PeerSecret) // Validate has seen it
		b.peers = peer.New(peer.Options{
			TLS: b.linkTLS(), Self: b.serverID, Secret: secret,
			Handle: b.hint, Fault: peer.Fault(o.HintFault), Logger: o.Logger,
			Refused: b.rejected("an instance is refused: "),
			Metrics: peer.Metrics{
				Sent: b.metrics.hint("sent"), Missed: b.metrics.hint("missed"), Received: b.metrics.hint("received"),
			},
		})
		b.handleCalls()
	}
	b.hub = hub.New(hub.Options{
		Loops: loops, Pool: b.pool, Registry: o.Registry, Queue: o.Queue, ServerID: b.serverID,
		PositionTTL: o.PositionTTL,
		Logger:      b.log, Drained: func(d time.Duration) { b.metrics.drainLag.Observe(d.Seconds()) },
		Lost: func(channel string, id int64) { b.lost(peer.Channel, channel, id) },
	})
	b.pusher = delivery.New(delivery.Options{
		Registry: o.Registry, Queue: o.Queue, Self: b.serverID, Live: b.Live,
		Local: b.hint, Remote: b.tell, Stored: b.metrics.store,
		Keep: b.keep, SetAckDeadline: o.Watch, Epoch: o.StoreEpoch, Lost: func() { b.doubts.Add(1) },
	})
	b.presence = presence.New(presence.Options{
		Store: o.Registry, Pool: b.pool, Loops: loops, ServerID: b.serverID, HoldsLease: b.leased, Notify: b.tell,
		Hold: b.hub.Hold, Members: func(channel string) []registry.Member { return b.sessions.Members(channel) },
		LargeChannel: o.LargeChannel, Logger: b.log,
	})
	s := session.Options{
		Hub: b.hub, Pool: b.pool, Loops: loops, Registry: o.Registry, Queue: o.Queue,
		ServerID: b.serverID, Publish: b.publish, Presence: b.presence,
		Access: session.Access{Namespaces: b.doors.namespaces.Load, Anonymous: o.Anonymous},
		Hooks:  b.say(),
		Limits: session.Limits{
			Message: o.MaxMessage, Channels: o.MaxChannels, NewChannels: o.NewChannels,
			MessageRate: o.MessageRate, ByteRate: o.ByteRate,
		},
		Timing: session.Timing{
			Ping: o.Ping, Connect: o.ConnectTimeout, Backlog: o.SlowAfter, Renewal: o.Refresh,
		},
		Notify: session.Notify{
			Superseded: b.supersede, UserChanged: b.userChanged, Rejected: b.rejected("a client is refused: "),
			Lost: func(client string, id int64) { b.lost(peer.Client, client, id) },
		},
		Logger: b.log,
		Metrics: session.Metrics{
			Closed:    func(reason string) { b.metrics.closes.WithLabelValues(reason).Inc() },
			Delivered: func(n int) { b.metrics.delivered.Add(float64(n)) },
			Gap:       b.metrics.gaps.Inc,
			Refused:   func(what string) { b.metrics.refusals.WithLabelValues(what).Inc() },
		},
	}
	if !o.Tokens.Open() {
		s.Access.Verify = b.verify
	}
	if o.Shared {
		s.Requests = session.Requests{Queues: o.RequestQueues, From: o.RequestsFrom, Rate: o.RequestRate}
	}
	b.sessions = session.New(s)
}

// evicted counts an HTTP connection without an API key that gave its place to another.
func (b *Broker) evicted() { b.metrics.refusals.WithLabelValues("place").Inc() }

// publish is a client's push to a channel.
func (b *Broker) publish(ctx context.Context, channel string, data []byte, known bool) (session.Published, error) {
	r, err := b.pusher.ToChannel(ctx, channel, delivery.Payload{Data: data, Known: known})
	return session.Published{ID: r.ID, New: r.New}, err
}

// supersede is session.Notify.Superseded.
func (b *Broker) supersede(server, client string, generation int64) {
	h := peer.Hint{Kind: peer.Supersede, Name: client, ID: generation}
	if server != "" {
		b.tell(server, h)
		return
	}
	for id := range *b.live.Load() {
		if id != b.serverID() {
			b.tell(id, h)
		}
	}
}

// lost is called by whoever sees that the store forgot a message: then all its readers must hear of it.
func (b *Broker) lost(kind peer.Kind, name string, id int64) {
	b.pool.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), confirmTimeout)
		defer cancel()
		if err := b.pusher.ConfirmOne(ctx, kind, name, id); err != nil {
			b.log.Warn().Err(err).Msg("a loss is not told yet; the next assertion tries")
		}
	})
}

// rejected logs what is refused at one of the ports: at once, and then counted. The token, key or
// secret is not logged.
func (b *Broker) rejected(what string) func(reason, address string) {
	return func(reason, address string) {
		b.limited.Warn(what+reason, func(e *zerolog.Event) {
			if address != "" {
				e.Str("address", address)
			}
		})
	}
}

// Addrs are the addresses listened on; it waits until all ports are open, or ctx ends.
func (b *Broker) Addrs(ctx context.Context) (Addrs, error) {
	select {
	case <-b.serving:
		return b.addrs, nil
	case <-ctx.Done():
		return Addrs{}, ctx.Err()
	}
}

// ID is the server's id of now.
func (b *Broker) ID() string { return b.serverID() }
