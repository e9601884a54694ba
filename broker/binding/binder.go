package binding

import (
	"context"
	"sync/atomic"

	"github.com/rs/zerolog"

	"switchboard/broker/work"
	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// Options configures a Binder. All fields are required, except for Logger.
type Options struct {
	Registry Registry
	Queue    Queue
	Pool     *work.Pool // runs the store calls that nothing waits for
	Sessions Sessions
	// ServerID returns the server's current id. It changes after the server was declared dead.
	ServerID func() string
	// StoreContext returns a context for the store calls of one message.
	StoreContext func() context.Context
	// Tokens is whether clients with a user have tokens, which may be revoked.
	Tokens bool

	// Superseded notifies another server that it lost a client to a newer generation. If server is
	// "", it is not known which server that is, and all other servers are notified.
	Superseded func(server, client string, generation int64)
	// Uncertain is called if the outcome of a call is unknown that removes the client from this
	// server's list.
	Uncertain func(client string)
	// UserChanged is called when a client of the user was bound or unbound, with the servers that
	// watch the user. They are nil if the call failed; it is then repeated.
	UserChanged func(user string, watchers []string)

	Logger zerolog.Logger
}

// Registry holds the methods of a registry that a Binder calls.
type Registry interface {
	HoldClients(ctx context.Context, server string, clients []string) error
	DropClient(ctx context.Context, server, client string) error
	CheckTokens(ctx context.Context, list []registry.UserBinding) []error
	BindUsers(ctx context.Context, list []registry.UserBinding) []error
	UsersHave(ctx context.Context, list []registry.UserBinding) ([]bool, error)
	ReleaseUser(ctx context.Context, user, client string, generation int64) (watchers []string, err error)
	Subscriptions(ctx context.Context, list []registry.Subscriber) []registry.SubscriptionsOutcome
}

// Queue holds the methods of a queue that a Binder calls.
type Queue interface {
	BindClients(ctx context.Context, claims []queue.Claim) []queue.Outcome[queue.Bound]
	RefreshClients(ctx context.Context, server string, list []queue.HeldClient) []error
	Unbind(ctx context.Context, client string, generation int64) error
	Client(ctx context.Context, client string) (queue.Client, bool, error)
	Ack(ctx context.Context, client string, generation, id int64) (int, error)
}

// Sessions are the open sessions of this server. Their methods do not block.
type Sessions interface {
	// Generation returns the generation of the client's open session, 0 if there is none.
	Generation(client string) int64
	// Supersede closes the client's session if its generation is lower than the given one.
	Supersede(client string, generation int64)
}

// Binding is one client that the store has bound to this server.
type Binding struct {
	Client     string
	Generation int64
	UnsavedAck int64 // acknowledged by the client, perhaps not yet in the store; 0 for none
}

// Binder makes and ends the bindings of this server's clients in the store. Bind, Renew, CheckToken
// and Lock wait for the store, so the loops must not call them.
type Binder struct {
	opts    Options
	locks   clientLocks
	pending pendingBinds

	unbinding   atomic.Int64 // calls of UnbindLater that have not ended
	unconfirmed unconfirmedBinds
	failed      failedUnbinds
	// uncertainUsers are clients whose users may have changed without a hint.
	uncertainUsers uncertainUsers
}

// New returns a Binder without bindings.
func New(opts Options) *Binder { return &Binder{opts: opts} }

// Tick repeats what failed, and resolves binds with an unknown outcome. It must be called once a
// second.
func (b *Binder) Tick() {
	b.retryUnbinds()
	b.resolveUnconfirmed()
}

// Settled returns whether nothing is being bound or unbound, nothing of that has failed, and no
// bind has an unknown outcome.
func (b *Binder) Settled() bool {
	return b.unbinding.Load() == 0 && b.pending.empty() && b.unconfirmed.empty() && b.failed.empty()
}

// CheckToken returns an error if the client's token was revoked, or if that is not known. issued is
// when the token was issued, Unix ms.
func (b *Binder) CheckToken(ctx context.Context, client string, issued int64) error {
	user := wire.UserOf(client)
	if user == "" || !b.opts.Tokens {
		return nil
	}
	return b.opts.Registry.CheckTokens(ctx, []registry.UserBinding{{User: user, Binding: registry.Binding{Client: client}, Issued: issued}})[0]
}

// holds returns whether the store has the client bound to this server.
func (b *Binder) holds(ctx context.Context, client string) (bool, error) {
	c, known, err := b.opts.Queue.Client(ctx, client)
	return known && c.Server == b.opts.ServerID(), err
}

// NotifySuperseded notifies the server that held the client before it was bound here.
func (b *Binder) NotifySuperseded(client string, bound queue.Bound) {
	switch bound.PrevServer {
	case "":
	case b.opts.ServerID():
		b.opts.Sessions.Supersede(client, bound.Generation)
	default:
		b.opts.Superseded(bound.PrevServer, client, bound.Generation)
	}
}
