package session

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/rs/zerolog"

	"switchboard/broker/hub"
	"switchboard/broker/loop"
	"switchboard/broker/namespace"
	"switchboard/broker/presence"
	"switchboard/broker/work"
	"switchboard/queue"
	"switchboard/registry"
)

// Registry is what sessions need of the registry.
type Registry interface {
	HoldClients(ctx context.Context, server string, clients []string) error
	DropClient(ctx context.Context, server, client string) error
	BindUsers(ctx context.Context, list []registry.UserBinding) []error
	ReleaseUser(ctx context.Context, user, client string, generation int64) error
}

// Queue is what sessions need of the queue.
type Queue interface {
	BindClients(ctx context.Context, claims []queue.Claim) []queue.Outcome[queue.Bound]
	RefreshClients(ctx context.Context, server string, list []queue.Held) []error
	Unbind(ctx context.Context, client string, generation int64) error
	Client(ctx context.Context, client string) (queue.Client, bool, error)
	Window(ctx context.Context, client string, generation, after int64, limit int) (queue.Page, error)
	Ack(ctx context.Context, client string, generation, id int64) (int, error)
	Acks(ctx context.Context, acks []queue.Ack) []queue.Outcome[int]
	ReadChannel(ctx context.Context, channel string, after int64, limit int) (queue.Page, error)
	ReadChannels(ctx context.Context, reads []queue.ChannelRead) []queue.Outcome[queue.Page]
	PushRequest(ctx context.Context, request queue.Request) error
}

// Identity is who a token says the client is, and what it gives him.
type Identity struct {
	User    string
	Client  string          // the part of the id that the client chooses, where the token fixes it
	Expires time.Time       // zero for never
	Info    json.RawMessage // goes with his presence; nil for none
	Grants  namespace.Grants
}

// Published is what Publish did.
type Published struct {
	ID  int64
	New bool // it brought the channel into being
}

// Options configures a Manager. Hub, Pool, Loops, Registry, Queue, ServerID and Publish
// are required.
type Options struct {
	Hub      *hub.Hub
	Pool     *work.Pool
	Loops    []*loop.Loop
	Registry Registry
	Queue    Queue
	ServerID func() string // changes when the server was declared dead and came back
	// Publish stores a client's message to a channel and tells its subscribers. With known it
	// stores nothing where that would bring the channel into being: queue.ErrNewChannel.
	Publish func(ctx context.Context, channel string, data []byte, known bool) (Published, error)
	// Supersede tells another server that it lost a client to a newer generation. Where nobody knows which one
	// that is, server is empty, and all are told.
	Supersede func(server, client string, generation int64)
	// Lost is told that the store does not know a message of the client any more that it had. Nil
	// means that nobody cares.
	Lost func(client string, id int64)
	// Verify checks a token. Nil means the broker is open: a client says who it is.
	Verify func(token string) (Identity, error)
	// Rejected is called for each client without a good token, with one of the Rejected constants
	// and its address. Nil means that nothing is.
	Rejected func(reason, address string)
	// Say asks the backend. Zero means that it has none.
	Say Say
	// Anonymous lets clients connect without a token where one would be verified: they are no users.
	Anonymous bool
	// Namespaces says who may do what on channels, at the moment. Nil means that everybody may do everything.
	Namespaces func() *namespace.Set
	// Presence is told who comes and goes in the channels, and tells it. Nil means that nobody is.
	Presence *presence.Presence
	// UserChanged is told that a client of the user has come or gone. Nil means that nobody cares.
	UserChanged func(user string)
	// RequestQueues is the number of qq_{N} lists. Zero means requests are refused: nobody
	// could read them.
	RequestQueues int
	// RequestsFrom says whose clients may send requests: namespace.Anyone, Users, or Nobody, which
	// is zero.
	RequestsFrom namespace.Who
	// RequestRate is the most requests a second from one connection, with a burst of four seconds'
	// worth. Zero means any number.
	RequestRate int
	// MaxMessage is the most bytes of a payload. Zero means 64 KiB.
	MaxMessage int
	// MaxChannels is the most subscriptions of one connection. Zero means 128.
	MaxChannels int
	// MessageRate is the most messages a second from one connection, and ByteRate the most bytes, both with a burst of
	// four seconds' worth. Acknowledgements and pongs are no messages. Zero means any number.
	MessageRate, ByteRate int
	// NewChannels is the most channels a minute that one connection may bring into being, with a
	// burst of as many, or of MaxChannels if that is more. Zero means any number.
	NewChannels int
	// Ping is the interval of signs of life. Zero means 25 s.
	Ping time.Duration
	// ConnectTimeout is how long a connection may go without connect. Zero means 10 s.
	ConnectTimeout time.Duration
	// SlowAfter is how long a socket may be backed up without a break. Zero means 60 s.
	SlowAfter time.Duration
	// Refresh is how often a binding is renewed in the store. Zero means 30 min.
	Refresh time.Duration
	// Timeout bounds the store calls of one message. Zero means 5 s.
	Timeout time.Duration
	// Logger is silent when zero. Payloads and tokens are never logged.
	Logger zerolog.Logger
	// Metrics counts; the zero value counts nothing.
	Metrics Metrics
}

// Metrics are called on the loops.
type Metrics struct {
	Closed    func(reason string) // a session ended
	Delivered func(messages int)  // written to sockets since the last call, once a second per loop
	Gap       func()              // a client was told of a gap
	Refused   func(what string)   // a client was not allowed to do that, or too often
}

func (o Options) withDefaults() Options {
	o.MaxMessage = cmp.Or(o.MaxMessage, 64<<10)
	o.MaxChannels = cmp.Or(o.MaxChannels, 128)
	o.Ping = cmp.Or(o.Ping, 25*time.Second)
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, 10*time.Second)
	o.SlowAfter = cmp.Or(o.SlowAfter, time.Minute)
	o.Refresh = cmp.Or(o.Refresh, 30*time.Minute)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	if o.Lost == nil {
		o.Lost = func(string, int64) {}
	}
	if o.UserChanged == nil {
		o.UserChanged = func(string) {}
	}
	if o.Rejected == nil {
		o.Rejected = func(string, string) {}
	}
	if o.Supersede == nil {
		o.Supersede = func(string, string, int64) {}
	}
	if o.Metrics.Closed == nil {
		o.Metrics.Closed = func(string) {}
	}
	if o.Metrics.Delivered == nil {
		o.Metrics.Delivered = func(int) {}
	}
	if o.Namespaces == nil {
		all := namespace.Open()
		o.Namespaces = func() *namespace.Set { return all }
	}
	if o.Metrics.Refused == nil {
		o.Metrics.Refused = func(string) {}
	}
	if o.Metrics.Gap == nil {
		o.Metrics.Gap = func() {}
	}
	return o
}
