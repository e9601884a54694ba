package session

import (
	"cmp"
	"context"
	"encoding/json"
	"net/netip"
	"time"

	"github.com/rs/zerolog"

	"switchboard/broker/binding"
	"switchboard/broker/fields"
	"switchboard/broker/hub"
	"switchboard/broker/limit"
	"switchboard/broker/loop"
	"switchboard/broker/namespace"
	"switchboard/broker/presence"
	"switchboard/broker/snapshot"
	"switchboard/broker/work"
	"switchboard/internal/setting"
	"switchboard/internal/state"
	"switchboard/queue"
	"switchboard/registry"
)

// Options configures a Manager. Hub, Pool, Loops, Registry, Queue, ServerID, Publish, StepStates
// and Snapshots are required.
type Options struct {
	Hub  *hub.Hub
	Pool *work.Pool // runs the calls to the store
	// DurablePool runs durable publishes, so that a replica that does not answer delays no other
	// call. Nil means Pool.
	DurablePool *work.Pool
	Loops       []*loop.Loop
	Registry    Registry
	Queue       Queue
	// ServerID returns the server's current id. It changes after the server was declared dead.
	ServerID func() string
	// Publish stores a client's message to a channel and notifies the subscribers.
	Publish func(ctx context.Context, p Publication) (Published, error)
	// StepStates changes the states of channels and notifies the subscribers, see
	// queue.Redis.StepStates. It records which clients that own fields are connected.
	StepStates func(ctx context.Context, steps []queue.StateStep) []queue.Outcome[queue.Appended]
	// Snapshots makes the pages of channels' states.
	Snapshots *snapshot.Snapshots
	// Presence tracks which clients are in which channel. Nil disables it.
	Presence *presence.Presence

	Access Access
	Hooks  Hooks
	// Authorizer returns the function that decides about subscribes to a channel, next to Hooks. It
	// returns nil if the access rules decide. Nil means that they always do.
	Authorizer func(channel string) Authorizer
	Requests   Requests
	// Methods answer the requests that name them. The names are valid for wire.CheckMethod.
	Methods map[string]Method
	// MethodPool runs the methods. It is not Pool: a slow method must not occupy the workers of other
	// clients' store calls. It is required if there are Methods.
	MethodPool *work.Pool
	Limits     Limits
	Timing     Timing
	Notify     Notify

	Logger  zerolog.Logger // Silent when zero. Payloads and tokens are never logged.
	Metrics Metrics

	// Master returns a number for the part of the store that has the queue of a client. A part that
	// does not answer delays the comparison of no other one. Nil means that there is one part.
	Master func(client string) int
	// Ledger adds up what senders store on all servers. Nil means that each server counts alone.
	Ledger limit.Ledger
}

// Registry holds the methods of a registry that sessions call.
type Registry interface {
	binding.Registry
	Subscribe(ctx context.Context, c registry.SubscriptionChange) (registry.SubscriptionsChanged, error)
}

// Queue holds the methods of a queue that sessions call.
type Queue interface {
	binding.Queue
	Window(ctx context.Context, client string, generation, after int64, limit int) (queue.Page, error)
	ClientHeads(ctx context.Context, known []queue.ClientKnown) []queue.Outcome[queue.ClientHead]
	Acks(ctx context.Context, acks []queue.Ack) []queue.Outcome[int]
	ReadChannel(ctx context.Context, channel string, after int64, limit int) (queue.Page, error)
	ReadChannels(ctx context.Context, reads []queue.ChannelRead) []queue.Outcome[queue.Page]
	ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage]
	PushRequest(ctx context.Context, request queue.Request) error
}

// Publication is a client's message to a channel.
type Publication struct {
	Channel string
	// Message is what is published, and Entry the same as the store keeps it. Its Data may be a part
	// of Entry. Both are not used if there is an Update.
	Message state.Message
	Entry   []byte
	Key     string // idempotency key in the key space of the channel, "" for none
	// Durable waits until a replica has the message. If none confirms in time, the error is
	// queue.ErrNotReplicated and the Published is valid.
	Durable bool
	// ExistingOnly stores nothing if the store does not know the channel. The error is then
	// queue.ErrNewChannel.
	ExistingOnly bool
	// Update changes the state of the channel. If it is refused, the error is a *state.Refusal. Nil
	// for a message without changes.
	Update *state.Update
}

// Published is the result of Options.Publish.
type Published struct {
	ID      int64
	New     bool             // the message created the channel
	Numbers map[string]int64 // the results of additions, by field
}

// Access says which clients may connect, and what each may do.
type Access struct {
	// Verify checks a token. Nil means that the broker is open: it takes each client's user name
	// on trust.
	Verify func(token string) (Identity, error)
	// Anonymous lets clients connect without a token although Verify is set. They have no user.
	Anonymous bool
	// Namespaces returns the current access rules of channels. Nil allows every client everything.
	Namespaces func() *namespace.Set
}

// Identity is the content of a verified token.
type Identity struct {
	User    string
	Client  string          // the client part of the id, if the token fixes it
	Issued  int64           // when the token was issued, Unix ms; 0 if it is not known
	Expires time.Time       // zero for never
	Info    json.RawMessage // the client's presence info, nil for none
	Grants  namespace.Grants
	// Subscribe are the channels to which the token subscribes the client.
	Subscribe []string
}

// Requests configures the requests that clients send to the backend.
type Requests struct {
	// Ask sends the JSON of a request to the backend and returns the JSON of the answer. since is the
	// time at which the request arrived. The error is a *wire.Error or *wire.DetailedError. Nil means
	// that requests go to the lists of the backend's workers.
	Ask func(ctx context.Context, request []byte, since time.Time) (json.RawMessage, error)
	// Pool runs Ask. It is not Options.Pool: a backend that hangs must not occupy the workers of
	// other clients' store calls. It is required with Ask.
	Pool *work.Pool
	// Share is the most requests of one limit.Sender that wait for Ask, on all its connections. Zero
	// means no limit.
	Share int
	// Queues is the number of qq_{N} lists. Zero refuses all requests, unless there is Ask.
	Queues int
	// From says which clients may send requests. Zero means none.
	From namespace.Access
	// Rate is the most requests per second of one connection, with a burst of four seconds' worth.
	// Zero means no limit.
	Rate int
}

// Limits bounds what one connection may send and hold. NewChannels, UserStored and UserRead count
// by limit.Sender: by user, or by address for clients without a user. Zero means the default in a
// field's tag. Where the tag zero is true, zero means no limit.
type Limits struct {
	// StateLimits bounds the changes that a client may make to a state, and the states.
	fields.StateLimits
	// Proxies are the networks of proxies. They are exempt from the limits of addresses, and only
	// their X-Forwarded-For is believed. Zero means none.
	Proxies []netip.Prefix

	Message int `setting:"limits.message" default:"65536" help:"bytes of one payload"`
	// A message waits for the answer to an earlier one, or for the socket to take what was written.
	Waiting  int `setting:"limits.waiting" default:"64" help:"messages that one connection may send without waiting for answers; one more closes it"`
	Channels int `setting:"limits.channels" default:"128" help:"subscriptions of one connection"`
	// Acknowledgements and pongs do not count for MessageRate.
	MessageRate int `setting:"limits.message_rate" default:"500" zero:"true" help:"messages a second from one connection, with bursts of four seconds' worth; 0 for\nno limit. Acknowledgements do not count"`
	ByteRate    int `setting:"limits.byte_rate" default:"2097152" zero:"true" help:"bytes a second from one connection, with bursts of four seconds' worth; 0 for no\nlimit"`
	// NewChannels and UserStored count on all servers if there is a Ledger, but subscribes count on
	// this server only. The burst of NewChannels is NewChannels or Channels, whichever is larger.
	NewChannels int `setting:"limits.new_channels" default:"60" zero:"true" help:"channels a minute that the clients of one user, or those without a user at one\naddress (an IPv6 /64), may create by a publish on all instances, or by a subscribe on\nthis one, with bursts of the same number, or of limits.channels if that is larger;\n0 for no limit. List your load balancer in limits.proxies"`
	UserStored  int `setting:"limits.user_stored" default:"67108864" zero:"true" help:"bytes an hour that the same clients may store on all instances by publishes, with bursts of the same number; 0 for no limit"`
	UserRead    int `setting:"limits.user_read" default:"2097152" zero:"true" help:"bytes a second that messages of the same clients may make the store send to this instance, with bursts of four seconds' worth; 0 for no limit"`
}

// Timing holds the timeouts and intervals of sessions. Zero means the default in a field's tag.
type Timing struct {
	Refresh time.Duration `setting:"times.refresh" default:"30m" help:"interval at which each client's binding is renewed; a binding lasts five intervals"`
	// Connect is the deadline for the head of an HTTP request or handshake, and then for the connect
	// message.
	Connect time.Duration `setting:"times.connect" default:"10s" help:"deadline for a handshake, and then for the connect message"`
	Slow    time.Duration `setting:"times.slow" default:"1m" help:"how long a client may leave its socket unread"`
	// StoreCall bounds the store calls of one message. Zero means 5 s.
	StoreCall time.Duration
	// Method bounds one call of a method. Zero means 10 s.
	Method time.Duration
}

// Notify holds callbacks for events that concern other parts of the broker. Each may be nil.
type Notify struct {
	// Superseded notifies another server that it lost a client to a newer generation. If server is
	// "", the caller does not know which server that is, and all other servers are notified.
	Superseded func(server, client string, generation int64)
	// Acknowledged notifies the client's server that the store has an acknowledgement.
	Acknowledged func(server, client string, generation, id int64)
	// Lost is called when the store no longer knows a message of a client that it once had.
	Lost func(client string, id int64)
	// Uncertain is called if the outcome of a call is unknown that removes the client from this
	// server's list. Nil means no call.
	Uncertain func(client string)
	// UserChanged is called when a client of the user was bound or unbound, with the servers that
	// watch the user. They are nil if the call failed; it is then repeated.
	UserChanged func(user string, watchers []string)
	// Rejected is called when a client's token is refused, with one of the Rejected constants and
	// the client's address.
	Rejected func(reason, address string)
}

// The reasons for Notify.Rejected.
const (
	RejectedMissing = "no token"
	RejectedExpired = "an expired token"
	RejectedRevoked = "a revoked token"
	RejectedBad     = "a bad token"
)

// Metrics are called on the loops. Each may be nil.
type Metrics struct {
	Closed    func(reason string) // a session ended
	Delivered func(messages int)  // messages written since the last call; once a second per loop
	Gap       func()              // a gap was announced to a client
	Refused   func(what string)   // a client's message broke an access rule or a limit
}

func (o Options) withDefaults() Options {
	setting.Fill(&o.Limits)
	setting.Fill(&o.Timing)
	o.Timing.StoreCall = cmp.Or(o.Timing.StoreCall, 5*time.Second)
	o.Timing.Method = cmp.Or(o.Timing.Method, 10*time.Second)
	if o.Access.Namespaces == nil {
		all := namespace.Open()
		o.Access.Namespaces = func() *namespace.Set { return all }
	}
	if o.Notify.Acknowledged == nil {
		o.Notify.Acknowledged = func(string, string, int64, int64) {}
	}
	if o.Notify.Superseded == nil {
		o.Notify.Superseded = func(string, string, int64) {}
	}
	if o.Notify.Lost == nil {
		o.Notify.Lost = func(string, int64) {}
	}
	if o.Notify.Uncertain == nil {
		o.Notify.Uncertain = func(string) {}
	}
	if o.Notify.UserChanged == nil {
		o.Notify.UserChanged = func(string, []string) {}
	}
	if o.Notify.Rejected == nil {
		o.Notify.Rejected = func(string, string) {}
	}
	if o.Metrics.Closed == nil {
		o.Metrics.Closed = func(string) {}
	}
	if o.Metrics.Delivered == nil {
		o.Metrics.Delivered = func(int) {}
	}
	if o.Metrics.Gap == nil {
		o.Metrics.Gap = func() {}
	}
	if o.Metrics.Refused == nil {
		o.Metrics.Refused = func(string) {}
	}
	return o
}
