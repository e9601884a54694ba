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
	"switchboard/broker/fields"
	"switchboard/broker/health"
	"switchboard/broker/hook"
	"switchboard/broker/namespace"
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

// ListenOptions are the ports for clients, backends and operators.
type ListenOptions struct {
	// HTTP is the address of the API, /ws and the probes. Zero means 127.0.0.1:8080.
	HTTP string
	// TCP is the address for raw TCP and for WebSockets on the event loop; "off" disables it. Zero
	// means 127.0.0.1:7070.
	TCP string
	// Probes is the address of a separate port for /healthz, /readyz and /metrics, without TLS. Zero
	// means that the HTTP port serves them.
	Probes string
	// Pprof is the loopback address of /debug/pprof/. Zero means none.
	Pprof string
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
	Address string
	// Advertise is the host:port at which other servers reach the links, or a go-sockaddr template for
	// the host. Zero means the address of the listener, with a private IP address instead of 0.0.0.0.
	Advertise string
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
	HintFault string
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
// worth.
type LimitOptions struct {
	// Connections is the maximum number of client connections. Zero means the limit of descriptors
	// minus those that Redis, files and links need.
	Connections int
	// MessageBytes is the maximum size of a payload. Zero means 64 KiB.
	MessageBytes int
	// Channels is the maximum number of subscriptions of a connection. Zero means 128.
	Channels int
	// LargeChannel is the number of members above which presence sends joins and leaves in batches,
	// once a second, and no here values. Zero means 200.
	LargeChannel int
	// MessageRate is the maximum number of messages a second from a connection. Zero means unlimited.
	MessageRate int
	// ByteRate is the maximum number of bytes a second from a connection. Zero means unlimited.
	ByteRate int
	// NewChannels is the maximum number of channels a minute that the clients of one user, or those
	// without a user at one address, may create on all servers by publishes, or on this one by
	// subscribes. Zero means unlimited.
	NewChannels int
	// UserStored is the maximum number of bytes an hour that they may store on all servers. Zero means
	// unlimited.
	UserStored int
	// UserRead is the maximum number of bytes a second that their messages may make the store send to
	// this server. Zero means unlimited.
	UserRead int
	// PushRate is the maximum number of pushes a second with one API key; each target counts. Zero
	// means unlimited.
	PushRate int
	// AddressConnections is the maximum number of connections from one address; an IPv6 /64 is one
	// address. Zero means unlimited.
	AddressConnections int
	// AddressRate is the maximum number of new connections a second from one address. Zero means
	// unlimited.
	AddressRate int
	// Proxies are exempt from the address limits, and only their X-Forwarded-For is believed. Zero
	// means none.
	Proxies []netip.Prefix
	// ProxyProtocol are the load balancers whose connections to the TCP port begin with a PROXY
	// header, which names the client. Their connections without one, and headers of others, are
	// refused. Zero means none.
	ProxyProtocol []netip.Prefix
	// ProxyProtocolHTTP is ProxyProtocol for the HTTP port.
	ProxyProtocolHTTP []netip.Prefix
	// Batch is the maximum number of pushes in one call. Zero means 1000.
	Batch int
	// Targets is the maximum number of targets in one call, over all its pushes. Zero means 10,000.
	Targets int
	// Fields is the maximum number of fields in the state of a channel. Zero means 1024.
	Fields int
	// StateBytes is the maximum size of the names and values of those fields. Zero means 1 MiB.
	StateBytes int
	// FieldBytes is the maximum size of one value. Zero means 16 KiB.
	FieldBytes int
	// Operations is the maximum number of fields that one publish changes, and of its conditions. Zero
	// means 64.
	Operations int
	// OwnedFields is the maximum number of fields of a channel that one client owns. Zero means 16.
	OwnedFields int
}

// fields returns the limits of changes and states.
func (l LimitOptions) fields() fields.Limits {
	return fields.Limits{
		Fields: l.Fields, StateBytes: l.StateBytes, FieldBytes: l.FieldBytes, Operations: l.Operations, Owned: l.OwnedFields,
		Message: l.MessageBytes,
	}
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

// TimingOptions are intervals and deadlines.
type TimingOptions struct {
	// Beat is the interval at which the server renews its lease, which the registry must keep for five
	// beats. Zero means 2 s.
	Beat time.Duration
	// Refresh is the interval at which each client's binding is renewed. Zero means 30 min.
	Refresh time.Duration
	// Ping is the interval of pings on an idle connection. Zero means 25 s.
	Ping time.Duration
	// Connect is the deadline for the head of an HTTP request or handshake, and then for the connect
	// message. Zero means 10 s.
	Connect time.Duration
	// Slow is the longest time that a client may leave its socket unread. Zero means 60 s.
	Slow time.Duration
	// Drain is the time over which the clients' reconnects are spread when the server shuts down. Zero
	// means 10 s.
	Drain time.Duration
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
	Compression bool
}

func (o Options) withDefaults() Options {
	o.Name = cmp.Or(o.Name, "broker")
	o.Listen.HTTP = cmp.Or(o.Listen.HTTP, "127.0.0.1:8080")
	o.Listen.TCP = cmp.Or(o.Listen.TCP, "127.0.0.1:7070")
	if o.Listen.Open == nil {
		o.Listen.Open = func(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }
	}
	o.Limits.Connections = cmp.Or(o.Limits.Connections, defaultConnections())
	o.Limits.MessageBytes = cmp.Or(o.Limits.MessageBytes, 64<<10)
	o.Limits.Channels = cmp.Or(o.Limits.Channels, 128)
	o.Limits.LargeChannel = cmp.Or(o.Limits.LargeChannel, 200)
	o.Limits.Batch = cmp.Or(o.Limits.Batch, 1000)
	o.Limits.Targets = cmp.Or(o.Limits.Targets, 10_000)
	o.Limits.Fields = cmp.Or(o.Limits.Fields, 1024)
	o.Limits.StateBytes = cmp.Or(o.Limits.StateBytes, 1<<20)
	o.Limits.FieldBytes = cmp.Or(o.Limits.FieldBytes, 16<<10)
	o.Limits.Operations = cmp.Or(o.Limits.Operations, 64)
	o.Limits.OwnedFields = cmp.Or(o.Limits.OwnedFields, 16)
	setting.Fill(&o.Requests)
	o.Timing.Beat = cmp.Or(o.Timing.Beat, 2*time.Second)
	o.Timing.Refresh = cmp.Or(o.Timing.Refresh, 30*time.Minute)
	o.Timing.Ping = cmp.Or(o.Timing.Ping, 25*time.Second)
	o.Timing.Connect = cmp.Or(o.Timing.Connect, 10*time.Second)
	o.Timing.Slow = cmp.Or(o.Timing.Slow, time.Minute)
	o.Timing.Drain = cmp.Or(o.Timing.Drain, 10*time.Second)
	o.Timing.PositionTTL = cmp.Or(o.Timing.PositionTTL, 6*time.Hour)
	o.Runtime.Loops = cmp.Or(o.Runtime.Loops, runtime.GOMAXPROCS(0))
	o.Registerer = cmp.Or(o.Registerer, prometheus.NewRegistry())
	if o.Store.Epoch == nil && o.Store.Shared {
		o.Store.Epoch = func(string) uint64 { return 0 }
	}
	return o
}
