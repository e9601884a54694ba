package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"switchboard/broker/auth"
	"switchboard/broker/delivery"
	"switchboard/broker/hook"
	"switchboard/broker/namespace"
	"switchboard/broker/peer"
	"switchboard/internal/certfile"
	"switchboard/queue"
	"switchboard/registry"
)

// Options configures a Broker. Registry and Queue are required.
type Options struct {
	// Name begins the server's id, which is <name>-<random>. Zero means "broker".
	Name string
	// Version is told to other instances.
	Version string

	// HTTP is the address of the API, of /ws and of the probes. Zero means 127.0.0.1:8080.
	HTTP string
	// TCP is the address of raw TCP and of WebSocket on the event loop. Zero means
	// 127.0.0.1:7070; "off" means none.
	TCP string
	// Peer is an address of its own for the links between instances, or "http" for that of HTTP.
	// Zero means that of HTTP too, which then must be a loopback address.
	Peer string
	// Probes is an address of its own for /healthz, /readyz and /metrics, without TLS. Zero means
	// that of HTTP.
	Probes string
	// Pprof is the loopback address of /debug/pprof/. Zero means none.
	Pprof string
	// Advertise is the host:port where other instances reach the links, or a go-sockaddr
	// template for the host. Zero means the address that is listened on, or where that is
	// unspecified a private interface's.
	Advertise string

	// Registry and Queue are the store. Shared says that other instances may share it;
	// without, there are no peer links, and requests are refused.
	Registry registry.Registry
	Queue    queue.Queue
	Shared   bool
	// StoreChanged signals that the store restarted or failed over. Nil means never.
	StoreChanged <-chan struct{}
	// StoreEpoch is another number before the first write to a store that restarted or failed over.
	// Nil means always the same; without Shared, that the store loses nothing while this process
	// lives.
	StoreEpoch func() uint64

	// Watch has the backend told of a push with notify_after that nobody acknowledges in time. Nil means that such
	// pushes are refused.
	Watch func(ctx context.Context, w delivery.AckDeadline) error

	// Keys are the API keys of /v1. Tokens verifies what clients connect with. Where both
	// are empty the broker is open.
	Keys   auth.Keys
	Tokens *auth.Tokens
	// Anonymous lets clients connect without a token where tokens are verified. They are no users, and
	// may do what a namespace opens to anyone.
	Anonymous bool
	// Namespaces says who may do what on channels. Nil means everything for everybody where the broker is
	// open, and else that users may subscribe and see who is there and what was said.
	Namespaces *namespace.Set
	// Hooks are where the backend is asked whether clients may connect and subscribe. Zero means that it is not.
	Hooks hook.Options
	// TLS is the certificate of the HTTP port, PeerTLS that of the links, which show it to each other. Nil means in the
	// clear. The TCP port is always in the clear.
	TLS, PeerTLS *certfile.Files
	// PeerSecret is shared by all instances, and has 32 bytes at least. Empty means that the links
	// are open.
	PeerSecret string
	// Hosts are the names under which clients reach the broker while it is open.
	Hosts auth.Hosts
	// Origins are the browser origins besides the own host.
	Origins auth.Origins
	// Insecure allows an open broker, or open peer links, on an address that is not loopback.
	Insecure bool
	// ClientPublish lets users publish to channels where there are no namespaces. Zero means only where the
	// broker is open.
	ClientPublish bool

	// Loops is how many event loops each listener has. Zero means GOMAXPROCS.
	Loops int
	// MaxConnections is the most client connections of the process. Zero means the descriptor
	// limit less what Redis, files and peers need.
	MaxConnections int
	// MaxMessage is the most bytes of one payload. Zero means 64 KiB.
	MaxMessage int
	// MaxChannels is the most subscriptions of one connection. Zero means 128.
	MaxChannels int
	// LargeChannel is the number of clients above which what changes in a channel's presence is told together, once a
	// second. Zero means 200.
	LargeChannel int
	// MessageRate is the most messages a second from one connection, ByteRate the most bytes. Zero means any number.
	MessageRate, ByteRate int
	// NewChannels is the most channels a minute that one connection may bring into being. Zero
	// means any number.
	NewChannels int
	// PushRate is the most pushes a second with one API key; each target of a push is one. Zero means any number.
	PushRate int
	// AddressConnections is the most connections from one address, and AddressRate the most new ones a second; of IPv6
	// all of a /64 are one address. Zero means any number.
	AddressConnections, AddressRate int
	// Proxies connect for others: they are not limited by address, and X-Forwarded-For is believed of them alone.
	Proxies []netip.Prefix
	// MaxBatch is the most pushes of one batch call. Zero means 1000.
	MaxBatch int
	// MaxTargets is the most targets of one call, over all its pushes. Zero means 10,000.
	MaxTargets int
	// NoFastPush leaves the pushes of a connection that has pushed to net/http. Zero means that
	// they are read without it, at about half the cost.
	NoFastPush bool
	// RequestQueues is how many qq_{N} lists requests are spread over. Zero means 16.
	RequestQueues int
	// RequestsFrom says whose clients may send requests: namespace.Anyone, Users, or Nobody, which
	// is zero.
	RequestsFrom namespace.Access
	// RequestRate is the most requests a second from one connection. Zero means any number.
	RequestRate int
	// Compression negotiates permessage-deflate on /ws. Such a connection stays with net/http, on a goroutine of its own.
	Compression bool

	// PositionTTL is for how long the queue knows the position of a channel without messages. Those
	// of channels with subscribers here are kept. Zero means 6 h.
	PositionTTL time.Duration
	// Beat is the interval of the lease's renewal. Zero means 2 s. The registry's lease is 5 × that.
	Beat time.Duration
	// Refresh is the interval at which each client's binding is renewed. Zero means 30 min.
	Refresh time.Duration
	// Ping is the interval of signs of life on a connection. Zero means 25 s.
	Ping time.Duration
	// ConnectTimeout is how long a connection may go without connect, and how long its handshake, or the head of any
	// request, may take before. Zero means 10 s.
	ConnectTimeout time.Duration
	// SlowAfter is how long a client may leave its socket unread. Zero means 60 s.
	SlowAfter time.Duration
	// DrainTime is over how long clients are asked to come back elsewhere when this server
	// goes down. Zero means 10 s.
	DrainTime time.Duration

	// Logger is silent when zero.
	Logger zerolog.Logger
	// Registerer takes the metrics. Nil means a registry of the broker's own, served at /metrics.
	Registerer *prometheus.Registry
	// HintFault is what this server does wrong with the hints between instances: "drop" loses
	// all that it sends, "mangle" repeats and reorders those it gets. Everything must arrive all
	// the same; for tests and the fault ledger. Zero means nothing.
	HintFault string
}

func (o Options) withDefaults() Options {
	o.Name = cmp.Or(o.Name, "broker")
	o.HTTP = cmp.Or(o.HTTP, "127.0.0.1:8080")
	o.TCP = cmp.Or(o.TCP, "127.0.0.1:7070")
	o.MaxMessage = cmp.Or(o.MaxMessage, 64<<10)
	o.MaxChannels = cmp.Or(o.MaxChannels, 128)
	o.MaxBatch = cmp.Or(o.MaxBatch, 1000)
	o.MaxTargets = cmp.Or(o.MaxTargets, 10_000)
	o.RequestQueues = cmp.Or(o.RequestQueues, 16)
	o.PositionTTL = cmp.Or(o.PositionTTL, 6*time.Hour)
	o.Beat = cmp.Or(o.Beat, 2*time.Second)
	o.Refresh = cmp.Or(o.Refresh, 30*time.Minute)
	o.Ping = cmp.Or(o.Ping, 25*time.Second)
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, 10*time.Second)
	o.SlowAfter = cmp.Or(o.SlowAfter, time.Minute)
	o.DrainTime = cmp.Or(o.DrainTime, 10*time.Second)
	o.Loops = cmp.Or(o.Loops, runtime.GOMAXPROCS(0))
	o.MaxConnections = cmp.Or(o.MaxConnections, defaultConnections())
	if o.StoreEpoch == nil && o.Shared {
		o.StoreEpoch = func() uint64 { return 0 }
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	return o
}

// Open says whether anybody may push and connect.
func (o Options) Open() bool { return o.Keys.Open() && o.Tokens.Open() }

// Rules are the namespaces configured, or what stands in their place.
func (o Options) Rules() *namespace.Set {
	switch {
	case o.Namespaces != nil:
		return o.Namespaces
	case o.Open():
		return namespace.Open()
	}
	return namespace.Keyed(o.ClientPublish)
}

// Validate says what is wrong, by the names that the configuration uses.
func (o Options) Validate() error {
	var errs []error
	if o.Registry == nil || o.Queue == nil {
		errs = append(errs, errors.New("registry and queue: both are required"))
	}
	loopback := true
	for _, a := range []struct{ name, addr string }{{"http", o.HTTP}, {"tcp", o.TCP}, {"peer", o.Peer}} {
		if a.addr == "" || a.addr == "off" && a.name == "tcp" || a.addr == PeerOnHTTP && a.name == "peer" {
			continue
		}
		host, _, err := net.SplitHostPort(a.addr)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %q is not host:port: %w", a.name, a.addr, err))
			continue
		}
		loopback = loopback && isLoopback(host)
	}
	switch {
	case loopback || o.Insecure:
	case o.Keys.Open():
		errs = append(errs, errors.New("auth.keys: no API key, so anybody who reaches this address may push; give keys, or --insecure"))
	case o.Tokens.Open():
		errs = append(errs, errors.New("auth: no token key, so clients may say who they are; give one, or --insecure"))
	case o.Shared && o.PeerSecret == "":
		errs = append(errs, errors.New("peer_secret: none, so anybody who reaches this address may act as an instance; give one, or --insecure"))
	}
	errs = append(errs, o.validateLinks(), o.validateOperator())
	least := min(o.MaxMessage, o.MaxChannels, o.LargeChannel, o.MaxBatch, o.MaxTargets, o.MaxConnections, o.RequestQueues,
		o.MessageRate, o.ByteRate, o.PushRate, o.AddressConnections, o.AddressRate, o.RequestRate, o.NewChannels)
	if least < 0 {
		errs = append(errs, errors.New("limits: none of them may be below zero"))
	}
	if fault := peer.Fault(o.HintFault); fault != "" && fault != peer.Drop && fault != peer.Mangle {
		errs = append(errs, fmt.Errorf("faults.hints: %q is neither drop nor mangle", o.HintFault))
	}
	return errors.Join(errs...)
}

// PeerOnHTTP is the value of Options.Peer that serves the links on the HTTP port.
const PeerOnHTTP = "http"

// ownLinkPort reports whether the links have an address of their own.
func (o Options) ownLinkPort() bool { return o.Peer != "" && o.Peer != PeerOnHTTP }

func (o Options) validateLinks() error {
	if _, err := auth.NewPeerSecret(o.PeerSecret); err != nil {
		return fmt.Errorf("peer_secret: %w", err)
	}
	switch {
	case !o.Shared || o.ownLinkPort():
		return nil
	case o.TLS != nil || o.PeerTLS != nil:
		return errors.New("peer: with TLS the links between instances need an address of their own")
	case o.Peer == "" && !onLoopback(o.HTTP):
		return errors.New("peer: the links between instances would be on the public HTTP address; " +
			"give them one of their own (peer: host:port), or say that this is meant (peer: http)")
	}
	return nil
}

// validateOperator checks the addresses that are for operators alone.
func (o Options) validateOperator() error {
	if o.Probes != "" {
		if _, _, err := net.SplitHostPort(o.Probes); err != nil {
			return fmt.Errorf("probes: %q is not host:port: %w", o.Probes, err)
		}
	}
	if !onLoopback(o.Pprof) {
		return fmt.Errorf("pprof: %q is not a loopback host:port; profiles show what is in memory", o.Pprof)
	}
	return nil
}

// LinksInClear reports whether the links between instances leave this machine without TLS.
func (o Options) LinksInClear() bool {
	addr := o.HTTP
	if o.ownLinkPort() {
		addr = o.Peer
	}
	return o.Shared && o.PeerTLS == nil && !onLoopback(addr)
}

// onLoopback reports whether addr is host:port on this machine only. A zero addr is the default,
// which is.
func onLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return addr == "" || err == nil && isLoopback(host)
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
