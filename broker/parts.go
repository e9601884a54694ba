package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"net/netip"
	"time"

	"github.com/rs/zerolog"

	"switchboard/broker/auth"
	"switchboard/broker/cluster"
	"switchboard/broker/delivery"
	"switchboard/broker/dialect"
	"switchboard/broker/dialect/sse"
	"switchboard/broker/extension"
	"switchboard/broker/hook"
	"switchboard/broker/hub"
	"switchboard/broker/limit"
	"switchboard/broker/loop"
	"switchboard/broker/peer"
	"switchboard/broker/presence"
	"switchboard/broker/ready"
	"switchboard/broker/session"
	"switchboard/broker/snapshot"
	"switchboard/broker/transport"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

func (b *Broker) newListeners() listeners {
	o := b.opts
	gate := transport.NewGate(o.Limits.Connections)
	gate.Evicted, gate.Keep = b.connectionEvicted, min(apiReserve, o.Limits.Connections/4)
	addresses := limit.NewAddresses(limit.AddressOptions{
		Connections: o.Limits.AddressConnections, Rate: o.Limits.AddressRate, Proxies: o.Limits.Proxies,
		Refused: b.metrics.refused,
	})
	limits := transport.Limits{
		Message: o.Limits.Message, First: transport.MaxFirst, Gate: gate, Addresses: addresses, Proxies: o.Limits.Proxies,
		Handshake: o.Timing.Connect, Page: b.refusePage,
	}
	// The listeners need the sessions, and the sessions need the listeners' loops: hence the closure.
	accept := func(l *loop.Loop, c transport.Conn, requests []wire.Request) transport.Receiver {
		return b.sessions.Accept(l, c, requests)
	}
	dialects := transport.Dialects{
		Stream:    func(byte) dialect.Dialect { return b.native },
		WebSocket: b.native, Framing: dialect.Text,
		Response: sse.New(o.Timing.Ping),
	}
	n := o.Runtime.Loops
	l := listeners{
		web: transport.NewWeb(n, 0, limits, dialects, accept), gate: gate, addresses: addresses, open: make(chan struct{}),
	}
	l.web.Compress = o.Runtime.Compression
	if o.Listen.TCP != "off" {
		l.poller = transport.NewPoller(n, n, limits, dialects, accept, o.Logger)
		l.poller.ProxyHeaders = b.proxyHeaders(o.Limits.ProxyProtocol)
		l.web.Poller = l.poller
	}
	return l
}

// proxyHeaders returns the load balancers of a port that send PROXY headers.
func (b *Broker) proxyHeaders(networks []netip.Prefix) transport.ProxyHeaders {
	refused := b.logRefused("a connection is refused: ")
	return transport.ProxyHeaders{
		Networks: networks, Refused: func(err error, address string) { refused(err.Error(), address) },
	}
}

func (b *Broker) newLinks() *peer.Links {
	o := b.opts
	secret, _ := auth.NewPeerSecret(o.Links.Secret) // Validate has checked it
	return peer.New(peer.Options{
		TLS: b.linkTLS(), Self: b.ID, Secret: secret,
		Dial: o.Links.Dial, LastActive: b.lastActive,
		Handle: b.member.Hint, Fault: peer.Fault(o.Links.HintFault), Logger: o.Logger,
		Refused: b.logRefused("an instance is refused: "),
		Metrics: peer.Metrics{
			Sent: b.metrics.hint("sent"), Missed: b.metrics.hint("missed"), Received: b.metrics.hint("received"),
		},
	})
}

func (b *Broker) newCluster() *cluster.Cluster {
	o := b.opts
	return cluster.New(cluster.Options{
		Member: b.member, Links: b.links, Registry: o.Store.Registry, Queue: o.Store.Queue, Tokens: !o.Access.Tokens.Open(),
		Beat: o.Timing.Beat, Stats: b.stats, Janitors: o.Store.Janitors, Memory: o.Store.Memory, Webhooks: o.Store.Webhooks,
	})
}

// newExtensions makes the extensions of the options. No namespace of the options may have their
// channels.
func (b *Broker) newExtensions() (*extension.Set, error) {
	o := b.opts
	set, err := extension.New(extension.HostOptions{
		Pusher: b.pusher, Queue: o.Store.Queue, Registry: o.Store.Registry, Cluster: b.cluster, ServerID: b.ID,
		CheckToken: b.access.checkToken, Address: b.addressOf, Logger: b.log,
	}, o.Extensions, o.Registerer)
	if err != nil {
		return nil, err
	}
	return set, b.access.reserve(set.Rules())
}

// newHooks makes the calls to the backend's URLs.
func (b *Broker) newHooks() (err error) {
	o := b.opts
	hooks, requests := o.Access.Hooks, o.Requests.Backend
	hooks.Agent, requests.Agent, requests.MaxAnswer = "switchboard/"+o.Version, "switchboard/"+o.Version, o.Limits.Message
	if b.hooks, err = hook.NewCalls(hooks, o.Access.Tokens.Open(), b.metrics.hook, o.Logger); err != nil {
		return err
	}
	b.requests, err = hook.NewRequestCalls(requests, b.metrics.hook, o.Logger)
	return err
}

// sessionHooks returns the hooks as package session calls them.
func (b *Broker) sessionHooks() (s session.Hooks) {
	if b.hooks != nil {
		s.Pool = b.hooks.Pool
	}
	if b.hooks.Asks(hook.Connect) {
		s.Connect = b.hooks.Ask
	}
	if b.hooks.Asks(hook.Subscribe) {
		s.Subscribe = b.hooks.Ask
	}
	return s
}

func (b *Broker) newReady() *ready.Check {
	return ready.New(ready.Options{
		Member: b.member, Hub: b.hub, Queue: b.opts.Store.Queue, Loop: b.listeners.web.Loops()[0],
		Draining: b.draining.Load, Tokens: func() string { return b.access.tokens.Load().Unready() },
	})
}

func (b *Broker) newHub(loops []*loop.Loop) *hub.Hub {
	o := b.opts
	return hub.New(hub.Options{
		Loops: loops, Pool: b.pool, Registry: o.Store.Registry, Queue: o.Store.Queue, ServerID: b.ID,
		Messages: b.native, PositionTTL: o.Timing.PositionTTL, Logger: b.log,
		Drained:   func(d time.Duration) { b.metrics.drainLag.Observe(d.Seconds()) },
		Lost:      func(channel string, id int64) { b.confirmMessage(peer.Channel, channel, id) },
		Uncertain: b.member.UncertainChannel, Master: o.Store.Master,
		Changed: func(channel string, e *state.Entry) { b.presence.FieldsChanged(channel, e) },
	})
}

func (b *Broker) newPusher() *delivery.Pusher {
	o := b.opts
	return delivery.New(delivery.Options{
		Registry: o.Store.Registry, Queue: o.Store.Queue, States: o.Store.Queue, Self: b.ID, Live: b.Live,
		Local: b.member.LocalHint, Remote: b.member.Send, Appended: b.hub.Appended, Stored: b.metrics.store,
		Keep: b.access.retention, SetAckDeadline: o.Store.SetAckDeadline, Epoch: o.Store.Epoch,
		Lost: b.member.Rebind, Unremembered: b.metrics.unremembered.Inc, MissHints: b.member.MissHints,
		FieldEnds: o.Store.FieldEnds, TracksFields: b.access.fieldsGone,
	})
}

// newSnapshots makes the part that keeps the states of channels for the subscribers on this server,
// and removes their fields that end.
func (b *Broker) newSnapshots() *snapshot.Snapshots {
	return snapshot.New(snapshot.Options{
		Hub: b.hub, Queue: b.opts.Store.Queue, Pool: b.pool, Messages: b.native, Logger: b.log,
		Away: func(channel string, owners []string) { b.sessions.OwnersAway(channel, owners) },
		Sweeps: &snapshot.Sweeps{
			Self: b.ID, Live: b.Live, Servers: b.opts.Store.Registry.ChannelServers, Step: b.pusher.StepStates,
			Keep: b.access.stateKeep,
		},
	})
}

func (b *Broker) newPresence(loops []*loop.Loop) *presence.Presence {
	return presence.New(presence.Options{
		Store: b.opts.Store.Registry, Pool: b.pool, Loops: loops, ServerID: b.ID, HoldsLease: b.member.Leased,
		Notify: b.member.Send, Hold: b.hub.Hold, Messages: b.native,
		Members:    func(channel string) []registry.Member { return b.sessions.Members(channel) },
		Uncertain:  b.member.UncertainChannel,
		AliasField: b.access.aliasField, Fields: b.readTexts,
		ChannelLimits: b.opts.Limits.ChannelLimits, Master: b.opts.Store.Master, Renewal: b.opts.Timing.Refresh, HasFormer: b.member.HasFormer,
		Logger: b.log,
	})
}

func (b *Broker) newSessions(loops []*loop.Loop) *session.Manager {
	o := b.opts
	s := session.Options{
		Hub: b.hub, Pool: b.pool, DurablePool: b.durablePool, Loops: loops, Registry: o.Store.Registry, Queue: o.Store.Queue,
		ServerID: b.ID, Publish: b.publish, StepStates: b.pusher.StepStates, Snapshots: b.states, Presence: b.presence,
		Master: o.Store.Master,
		Access: session.Access{Namespaces: b.access.namespaces.Load, Anonymous: o.Access.Anonymous},
		Hooks:  b.sessionHooks(), Authorizer: b.extensions.Authorizer(), Methods: b.extensions.Methods(), MethodPool: b.methodPool,
		Requests: session.Requests{From: o.Requests.From, Rate: o.Requests.Rate},
		Limits:   o.Limits.Limits,
		Timing:   o.Timing.Timing,
		Notify: session.Notify{
			Superseded: b.member.Supersede, Acknowledged: b.member.Acknowledged, UserChanged: b.member.UserChanged, Rejected: b.logRefused("a client is refused: "),
			Lost:      func(client string, id int64) { b.confirmMessage(peer.Client, client, id) },
			Uncertain: b.member.UncertainClient,
		},
		Logger: b.log,
		Metrics: session.Metrics{
			Closed:    func(reason string) { b.metrics.closes.WithLabelValues(reason).Inc() },
			Delivered: func(n int) { b.metrics.delivered.Add(float64(n)) },
			Gap:       b.metrics.gaps.Inc,
			Refused:   b.metrics.refused,
		},
	}
	if o.Store.Shared {
		s.Ledger = o.Store.Registry
	}
	if !o.Access.Tokens.Open() {
		s.Access.Verify = b.verify
	}
	switch {
	case b.requests != nil:
		s.Requests.Ask, s.Requests.Pool = b.requests.Ask, b.requests.Pool
		s.Requests.Share = cmp.Or(o.Requests.Share, max(1, b.requests.Concurrency()/4))
	case o.Store.Shared:
		s.Requests.Queues = o.Requests.Queues
	}
	return session.New(s)
}

// readTexts implements presence.Options.Fields.
func (b *Broker) readTexts(ctx context.Context, reads []presence.FieldRead) {
	list := make([]queue.StateRead, len(reads))
	for i, r := range reads {
		list[i] = queue.StateRead{Channel: r.Channel, Fields: r.Fields}
	}
	for i, o := range b.opts.Store.Queue.ReadStates(ctx, list) {
		r := &reads[i]
		texts := make(map[string]string, len(o.Value.Fields))
		for _, f := range o.Value.Fields {
			var text string
			if json.Unmarshal(f.Value, &text) == nil {
				texts[f.Name] = text
			}
		}
		r.Texts, r.Err = make([]string, len(r.Fields)), o.Err
		for k, field := range r.Fields {
			r.Texts[k] = texts[field]
		}
	}
}

// publish implements session.Options.Publish.
func (b *Broker) publish(ctx context.Context, p session.Publication) (session.Published, error) {
	r, err := b.pusher.ToChannel(ctx, p.Channel, delivery.Payload{
		Message: p.Message, Entry: p.Entry, Key: p.Key, Durable: p.Durable, ExistingOnly: p.ExistingOnly, Update: p.Update,
	})
	return session.Published{ID: r.ID, New: r.New, Numbers: r.Numbers}, err
}

// connectionEvicted counts an HTTP connection without an API key that was closed to make room for
// another one.
func (b *Broker) connectionEvicted() { b.metrics.refused("place") }

// logRefused returns a function that logs refusals, with the reason and the address after the given
// text. It logs the first one at once and counts the following ones. It never logs a token, key or
// secret.
func (b *Broker) logRefused(text string) func(reason, address string) {
	return func(reason, address string) {
		b.limited.Warn(text+reason, func(e *zerolog.Event) {
			if address != "" {
				e.Str("address", address)
			}
		})
	}
}
