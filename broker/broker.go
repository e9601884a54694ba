package broker

import (
	"sync/atomic"

	"github.com/rs/zerolog"

	"switchboard/broker/api"
	"switchboard/broker/auth"
	"switchboard/broker/cluster"
	"switchboard/broker/delivery"
	"switchboard/broker/dialect/native"
	"switchboard/broker/extension"
	"switchboard/broker/hook"
	"switchboard/broker/hub"
	"switchboard/broker/limit"
	"switchboard/broker/member"
	"switchboard/broker/peer"
	"switchboard/broker/presence"
	"switchboard/broker/ready"
	"switchboard/broker/session"
	"switchboard/broker/snapshot"
	"switchboard/broker/work"
	"switchboard/internal/loglimit"
)

// Broker is one server. New makes its parts, and Run runs them.
type Broker struct {
	opts    Options
	hosts   auth.Hosts      // Options.hosts
	limited *loglimit.Limit // counts repeated warnings instead of logging each one
	log     zerolog.Logger  // writes through limited: for failures of single calls

	member    *member.Member     // this server's id and lease, and the other live servers
	access    *access            // the access rules in force
	hooks     *hook.Calls        // nil without hooks
	requests  *hook.RequestCalls // nil without a URL for requests
	listeners listeners          // the ports
	ackRate   *limit.Keyed       // acknowledgements over HTTP, by address
	links     *peer.Links        // to the other servers; nil without a shared store
	cluster   *cluster.Cluster

	native      *native.Dialect
	pool        *work.Pool // runs store calls
	methodPool  *work.Pool // runs the methods of client requests
	durablePool *work.Pool // runs durable publishes of clients, each of which may wait for a replica
	hub         *hub.Hub
	sessions    *session.Manager
	pusher      *delivery.Pusher
	states      *snapshot.Snapshots // of channels
	presence    *presence.Presence
	ready       *ready.Check
	metrics     *metrics

	extensions    *extension.Set
	clientWatches api.ClientWatches

	draining atomic.Bool
	ending   chan struct{} // closed when draining becomes true
}

// New returns a Broker that does nothing until Run. The error names the option that is wrong.
func New(opts Options) (*Broker, error) {
	opts = opts.withDefaults()
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	b := &Broker{
		opts: opts, pool: work.New(0), methodPool: work.New(0), durablePool: work.New(0),
		native: native.New(opts.Timing.Ping), ending: make(chan struct{}),
	}
	b.hosts = opts.hosts()
	b.limited = loglimit.New(opts.Logger, loglimit.Every)
	b.log = b.limited.Logger()
	b.member = b.newMember()
	b.access = newAccess(opts.Access, opts.Limits.PushRate)
	b.metrics = newMetrics(opts.Registerer, b)
	var err error
	if err = b.newHooks(); err != nil {
		return nil, err
	}
	b.listeners = b.newListeners()
	b.ackRate = limit.NewKeyed(limit.PerSecond(opts.Limits.MessageRate))
	loops := b.listeners.loops()
	if opts.Store.Shared {
		b.links = b.newLinks()
	}
	b.cluster = b.newCluster()
	b.hub = b.newHub(loops)
	b.pusher = b.newPusher()
	b.states = b.newSnapshots()
	b.presence = b.newPresence(loops)
	if b.extensions, err = b.newExtensions(); err != nil {
		return nil, err
	}
	b.sessions = b.newSessions(loops)
	b.attachParts()
	b.ready = b.newReady()
	return b, nil
}
