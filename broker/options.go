package broker

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"switchboard/broker/api"
	"switchboard/broker/auth"
	"switchboard/broker/delivery"
	"switchboard/broker/extension"
	"switchboard/broker/health"
	"switchboard/broker/hook"
	"switchboard/broker/namespace"
	"switchboard/broker/presence"
	"switchboard/broker/session"
	"switchboard/internal/certfile"
	"switchboard/internal/setting"
	"switchboard/internal/slots"
	"switchboard/janitor/heartbeat"
)

// Options configures a Broker. Only Store.Registry and Store.Queue are required.
type Options struct {
	// Name is the first part of the server's id, <name>-<random>. Zero means "broker".
	Name string
	// Version is the version that the probes and other servers report. Zero means none.
	Version string

	Listen   ListenOptions
	Links    LinkOptions
	Store    StoreOptions
	Access   AccessOptions
	Limits   LimitOptions
	Requests RequestOptions
	Timing   TimingOptions
	Runtime  RuntimeOptions

	// Extensions make the systems that stand on the broker. Zero means none.
	Extensions []func(*extension.Host) (extension.Extension, error)

	// Console serves the pages of the console, below /console/ on the HTTP port. Zero means none.
	Console http.Handler

	// Logger receives the log. Zero means no log.
	Logger zerolog.Logger
	// Registerer collects the metrics for /metrics. Zero means a new registry.
	Registerer *prometheus.Registry
}

// ListenOptions are the ports for clients, backends and operators. Zero means the default in a
// field's tag.
type ListenOptions struct {
	// HTTP is the address of the API, /ws and the probes.
	HTTP string `setting:"http" flag:"ADDRESS" default:"127.0.0.1:8080" help:"host:port of /ws, /v1, /healthz, /readyz and /metrics"`
	// TCP is the address for raw TCP and for WebSockets on the event loop; "off" disables it.
	TCP string `setting:"tcp" flag:"ADDRESS" default:"127.0.0.1:7070" help:"host:port of raw TCP (one JSON message per line) and WebSocket; off for none"`
	// Probes is the address of a separate port for /healthz, /readyz and /metrics, without TLS. Zero
	// means that the HTTP port serves them.
	Probes string `setting:"probes" flag:"ADDRESS" unset:"default the HTTP port" help:"host:port of a separate port for /healthz, /readyz and /metrics, without TLS;\nit must not be published"`
	// Pprof is the loopback address of /debug/pprof/. Zero means none.
	Pprof string `setting:"pprof" flag:"ADDRESS" unset:"default none" help:"loopback host:port of /debug/pprof/, like 127.0.0.1:6060"`
	// TLS is the certificate of the HTTP port; the TCP port is never encrypted. Zero means plain HTTP.
	TLS *certfile.Files
	// Open opens the HTTP ports, that of the links included, for example without sockets. The address
	// of the listener is an IP address with a port. Zero means net.Listen over TCP.
	Open func(addr string) (net.Listener, error)
}

// LinkOptions are the links between the servers that share a store.
type LinkOptions struct {
	// Address is the address of a separate port for the links; LinksOnHTTP puts them on the HTTP port.
	// Zero means the HTTP port too, but only if that has a loopback address.
	Address string `setting:"peer" flag:"ADDRESS" unset:"default http if --http is a loopback address, otherwise required" help:"host:port of a separate port for the links between instances, which must not be published; or http for the HTTP port"`
	// Advertise is the host:port at which other servers reach the links, or a go-sockaddr template for
	// the host. Zero means the address of the listener, with a private IP address instead of 0.0.0.0.
	Advertise string `setting:"advertise" flag:"ADDRESS" unset:"default the address of the port, with a private address for 0.0.0.0" help:"host:port at which other instances reach the links, or a go-sockaddr template\nfor the host, like {{ GetPrivateIP }}"`
	// Secret authenticates the servers to each other; it has at least 32 bytes. Zero means that the
	// links accept any caller.
	Secret string
	// TLS is the certificate that the servers show each other. Zero means unencrypted links.
	TLS *certfile.Files
	// Dial connects to the links of another server at host:port. It is not used with TLS. Zero means
	// a TCP connection.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// HintFault injects a fault for tests: "drop" loses all hints that this server sends, "mangle"
	// repeats and reorders those that it receives. No message may be lost either way. Zero means none.
	HintFault string `setting:"faults.hints" choices:"drop,mangle" unset:"default none" help:"drop loses the hints to other instances; mangle repeats and reorders hints from them"`
}

// LinksOnHTTP is the value of LinkOptions.Address that serves the links on the HTTP port.
const LinksOnHTTP = "http"

// StoreOptions are the store of the broker.
type StoreOptions struct {
	// Registry stores servers, bindings and presence. It is required.
	Registry Registry
	// Queue stores messages. It is required.
	Queue Queue
	// Shared allows other servers on the same store. Zero means a single server, without links to
	// others and without client requests.
	Shared bool
	// Changed receives, after each restart or failover of a part of the store, the slots of that part.
	// Zero means never.
	Changed <-chan slots.Set
	// Epoch returns a number that changes at each restart or failover of the part of the store that
	// has the queue of a channel or client, before the first write after it. With Shared, nil means
	// that the number never changes. Without Shared, nil means that the store loses nothing while this
	// process lives.
	Epoch func(name string) uint64
	// Master returns a number for the part of the store that has the keys of a name. Comparisons with
	// other parts do not wait for one that does not answer. Nil means that there is one part.
	Master func(name string) int
	// SetAckDeadline records a push with notify_after: if no client acknowledges the message in time,
	// the backend receives an event. Zero means that such pushes are refused.
	SetAckDeadline func(ctx context.Context, d delivery.AckDeadline) error
	// FieldEnds makes the backend receive events when fields end, in namespaces with FieldsGone. Zero
	// means no such events.
	FieldEnds delivery.FieldEnds
	// Webhooks shows operators the events that the backend receives. Zero means that there are none.
	Webhooks api.Webhooks
	// Janitors returns the janitors that have reported lately. Zero means that they are not known.
	Janitors func(ctx context.Context) ([]heartbeat.Janitor, error)
	// Memory returns the memory of each Redis server. Zero means that it is not known.
	Memory func(ctx context.Context) ([]health.Memory, error)
}

// AccessOptions are the access rules: who may connect, call the API, and use which channel.
// Broker.Reload replaces Keys, Tokens and Namespaces.
type AccessOptions struct {
	// Keys are the API keys of /v1. Zero means that every caller may push.
	Keys auth.Keys
	// Tokens verifies the tokens of clients. Zero means that clients choose their user freely.
	Tokens *auth.Tokens
	// Anonymous also accepts clients without a token, as clients without a user. Zero means that a
	// token is required, unless Tokens is zero.
	Anonymous bool
	// Namespaces are the rights of clients on channels. Zero means all rights if Keys and Tokens are
	// zero, and otherwise that users may subscribe and see presence and history.
	Namespaces *namespace.Set
	// ClientPublish lets users publish if Namespaces is zero. Zero means that only the backend
	// publishes, unless Keys and Tokens are zero.
	ClientPublish bool
	// Hooks are the backend's URLs that decide about connects and subscribes. Zero means none.
	Hooks hook.Options
	// Hosts are the names under which clients reach the broker while Keys or Tokens is zero, and under
	// which pages without https may connect with Anonymous and make public calls. Zero means
	// localhost, loopback addresses, and the names that the broker listens on and advertises; with
	// Insecure, and with keys and tokens, also all IP addresses.
	Hosts auth.Hosts
	// Origins are the browser origins that may connect. Zero means only the broker's own host.
	Origins auth.Origins
	// Insecure permits missing keys, tokens and link secrets on addresses that are not loopback. Zero
	// means that New refuses such options.
	Insecure bool
}

// LimitOptions bound what clients and backends may use. A rate permits a burst of four seconds'
// worth. Zero means the default in a field's tag. Where the tag zero is true, zero means no limit.
type LimitOptions struct {
	session.Limits
	api.CallLimits
	presence.ChannelLimits
	// Connections is the maximum number of client connections. Zero means the limit of descriptors
	// minus those that Redis, files and links need.
	Connections        int `setting:"max_connections" flag:"N" zero:"true" unset:"default as many as the limit of descriptors allows" help:"client connections of this process"`
	PushRate           int `setting:"limits.push_rate" zero:"true" unset:"default no limit" help:"pushes a second with one API key, with bursts of four seconds' worth; each target counts"`
	AddressConnections int `setting:"limits.address_connections" zero:"true" unset:"default no limit" help:"connections from one address (an IPv6 /64) to this process, including those of backends. List your load balancer in limits.proxies first"`
	AddressRate        int `setting:"limits.address_rate" zero:"true" unset:"default no limit" help:"new connections a second from one address, with bursts of four seconds' worth"`
	// ProxyProtocol are the load balancers whose connections to the TCP port begin with a PROXY
	// header, which names the client. Their connections without one, and headers of others, are
	// refused. Zero means none.
	ProxyProtocol []netip.Prefix
	// ProxyProtocolHTTP is ProxyProtocol for the HTTP port.
	ProxyProtocolHTTP []netip.Prefix
}

// RequestOptions are the requests that clients send to the backend, to a URL or to its workers.
// Zero means the default in a field's tag; a Rate of zero means no limit.
type RequestOptions struct {
	Queues int `setting:"requests.queues" default:"16" help:"number of qq_ lists over which client requests are spread"`
	// From selects the clients that may send requests: namespace.Anyone or namespace.Users. Zero means
	// none.
	From namespace.Access
	Rate int `setting:"requests.rate" default:"10" zero:"true" help:"requests a second from one connection, with bursts of four seconds' worth; 0 for no limit"`
	// Share is the maximum number of requests of one user, or of one address for clients without a
	// user, that wait for the answer of the Backend. Zero means a quarter of Backend.Concurrency.
	Share int `setting:"requests.share" unset:"default a quarter of requests.concurrency" help:"requests of one user that wait for the answer of requests.url, on this instance; for clients without a user, requests of one address"`
	// Backend is the URL that answers requests. Its Agent and MaxAnswer are not used. Zero means the
	// qq_{N} lists.
	Backend hook.RequestOptions
}

// TimingOptions are intervals and deadlines. Zero means the default in a field's tag.
type TimingOptions struct {
	session.Timing
	// Beat is the interval at which the server renews its lease, which the registry must keep for five
	// beats.
	Beat  time.Duration `setting:"times.beat" default:"2s" help:"interval at which this server renews its lease, which lasts five beats"`
	Ping  time.Duration `setting:"times.ping" default:"25s" help:"interval of pings on a connection"`
	Drain time.Duration `setting:"drain_time" flag:"DURATION" default:"10s" help:"time over which the reconnects of the clients are spread at a shutdown"`
	// PositionTTL is how long the queue remembers the position of an empty channel. The broker renews
	// those of its subscribers' channels. Zero means 6 h.
	PositionTTL time.Duration
}

// RuntimeOptions are choices of implementation that do not change the protocol.
type RuntimeOptions struct {
	// Loops is the number of event loops of each listener. Zero means GOMAXPROCS.
	Loops int
	// NoFastPush serves every push with net/http. Zero means that the pushes after the first one on a
	// connection are read without it, at about half the cost.
	NoFastPush bool
	// Compression negotiates permessage-deflate on /ws; such a connection stays with net/http, on its
	// own goroutine. Zero means no compression.
	Compression bool `setting:"compression" unset:"default no" help:"negotiate permessage-deflate on /ws; this costs memory for each connection"`
}

func (o Options) withDefaults() Options {
	o.Name = cmp.Or(o.Name, "broker")
	if o.Listen.Open == nil {
		o.Listen.Open = func(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }
	}
	setting.Fill(&o)
	o.Limits.Connections = cmp.Or(o.Limits.Connections, defaultConnections())
	o.Timing.PositionTTL = cmp.Or(o.Timing.PositionTTL, 6*time.Hour)
	o.Runtime.Loops = cmp.Or(o.Runtime.Loops, runtime.GOMAXPROCS(0))
	o.Registerer = cmp.Or(o.Registerer, prometheus.NewRegistry())
	if o.Store.Epoch == nil && o.Store.Shared {
		o.Store.Epoch = func(string) uint64 { return 0 }
	}
	return o
}
