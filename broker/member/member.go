package member

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"switchboard/broker/delivery"
	"switchboard/broker/hub"
	"switchboard/broker/presence"
	"switchboard/broker/session"
	"switchboard/broker/snapshot"
	"switchboard/internal/slots"
	"switchboard/registry"
)

// beatsPerLease is the length of a lease in beats: it survives four failed beats.
const beatsPerLease = 5

// Registry holds the methods of a registry that a Member calls.
type Registry interface {
	Renew(ctx context.Context, s registry.Server, since int64) (registry.Changes, error)
	Leave(ctx context.Context, server string) error
	Servers(ctx context.Context) ([]registry.Server, error)
	Listed(ctx context.Context) ([]string, error)
	Lease(ctx context.Context, server string) (s registry.Server, live bool, err error)
	RevokedSince(ctx context.Context, since int64) (users []string, next int64, more bool, err error)
	ListedIn(channel string, of *slots.Set) bool
	KeepChannelList(keep bool)
}

// Options configures a Member.
type Options struct {
	Registry Registry
	NewID    func() string                   // returns an id for this server that was never used before
	Describe func(id string) registry.Server // this server's entry with its current numbers
	Beat     time.Duration                   // between two beats; a lease lasts five of them
	Pace     time.Duration                   // over which Sweep spreads its comparisons
	SlowPace time.Duration                   // the same if nothing is urgent; zero for Pace
	// Changed receives the slots of a master that restarted or failed over. Nil means never.
	Changed <-chan slots.Set
	// Epoch returns a number that changes at each restart or failover of the part of the store that
	// has the keys of a name, before the first command is sent after it. Nil means that there are
	// none.
	Epoch func(name string) uint64
	// Rebinding is called when bindings are compared with the store because of a failure. Nil means no
	// call.
	Rebinding func()
	// Lost is called with the number of queues in which the store has lost messages that it had
	// acknowledged.
	Lost func(queues int)
	// ClientHint is called with the client of each hint for a client. Nil means no call.
	ClientHint func(client string)
	Logger     zerolog.Logger // for changes of this server's state
	Log        zerolog.Logger // for failures that repeat
}

// Parts are what a Member informs, binds again and ends.
type Parts struct {
	Hub      *hub.Hub
	Sessions *session.Manager
	Presence *presence.Presence
	States   *snapshot.Snapshots
	Pusher   *delivery.Pusher
	Links    Links // nil without a shared store
}

// Member is this server's entry in the registry: its id and its lease. It also holds the other live
// servers, as of the last beat.
type Member struct {
	opts    Options
	parts   Parts
	lease   time.Duration
	started time.Time

	id         atomic.Pointer[string] // a server that was declared dead takes a new id
	live       atomic.Pointer[map[string]registry.Server]
	former     atomic.Pointer[[]registry.Server] // live servers of former versions; nil before the first beat
	joined     atomic.Bool
	leaseStart atomic.Int64 // ns since started: when the last successful renewal began
	lastBeat   atomic.Int64 // ns since started: when the last successful beat ended
	failing    atomic.Bool  // the last beat failed, which is logged once
	// sentToAll is when a hint was sent to all servers that this one knew, nil if all servers that
	// were live then are known now.
	sentToAll atomic.Pointer[time.Time]

	refreshing   sync.Mutex // guards the fields below, so that an older list never replaces a newer one
	known        known      // the servers as of the last beat
	notified     int64      // StatesChanged of this server at the last beat
	revokedSince int64      // see registry.Redis.RevokedSince; only Beat uses it

	numbers numbers

	doubts doubts
	// statesEnded is whether a janitor may have ended fields since the last comparison of the channels
	// with states.
	statesEnded atomic.Bool

	work       worklist
	background sync.WaitGroup // rebinds, and comparisons that nothing waits for
}

// New returns a Member that has not joined. It needs its parts, see Attach, before the first beat.
func New(opts Options) *Member {
	m := &Member{
		opts: opts, lease: beatsPerLease * opts.Beat, started: time.Now(), known: newKnown(), work: newWorklist(),
		doubts: doubts{sweeping: make(chan struct{}, 1)},
	}
	m.doubts.compare = m.compareAll
	id := opts.NewID()
	m.id.Store(&id)
	m.live.Store(&map[string]registry.Server{})
	m.Rebind() // nothing is bound yet
	return m
}

// Attach sets the parts. They need the server's id, and the Member needs them: hence two steps.
func (m *Member) Attach(parts Parts) { m.parts = parts }

// ID returns the server's current id.
func (m *Member) ID() string { return *m.id.Load() }

// Started returns when the server started.
func (m *Member) Started() time.Time { return m.started }

// Lease returns how long a lease lasts.
func (m *Member) Lease() time.Duration { return m.lease }

// Joined reports whether the store has listed this server since its start.
func (m *Member) Joined() bool { return m.joined.Load() }

// Live returns the servers that had a lease at the last beat, by id. It must not be changed.
func (m *Member) Live() map[string]registry.Server { return *m.live.Load() }

// Leased reports whether the lease is certain to hold: its last renewal is recent enough.
func (m *Member) Leased() bool {
	return m.joined.Load() && time.Since(m.started)-time.Duration(m.leaseStart.Load()) < m.lease
}

// IsLive reports whether a server had a lease at the last beat. The first beat of this server has
// not read the list of servers yet when the lease begins.
func (m *Member) IsLive(server string) bool {
	_, listed := m.Live()[server]
	return listed || server == m.ID() && m.Leased()
}

// SinceBeat returns the time since the last successful beat.
func (m *Member) SinceBeat() time.Duration {
	return time.Since(m.started) - time.Duration(m.lastBeat.Load())
}

// renew joins the registry, or renews the lease, and updates the live servers. A server that was
// declared dead never gets its id back: it joins under a new one, and renew returns the former id.
func (m *Member) renew(ctx context.Context) (formerID string, err error) {
	m.refreshing.Lock()
	defer m.refreshing.Unlock()
	id, began := m.ID(), time.Since(m.started)
	changes, err := m.renewLease(ctx, id)
	// Also before the server has joined: the answer to an earlier call was lost, and the lease ended
	// since.
	if errors.Is(err, registry.ErrDead) {
		formerID = id
		changes, err = m.rejoin(ctx)
	}
	if err != nil {
		return "", err
	}
	if id = m.ID(); !m.joined.Swap(true) {
		m.opts.Logger.Info().Str("server", id).Str("host", m.opts.Describe(id).Host).Msg("joined")
	}
	m.leaseStart.Store(began.Nanoseconds())
	err = m.refresh(ctx, changes)
	if err == nil {
		m.forgetToAll(m.started.Add(began))
	}
	return formerID, err
}

// renewLease renews the lease, and returns what has changed since the last call.
func (m *Member) renewLease(ctx context.Context, id string) (registry.Changes, error) {
	var epoch uint64
	if m.opts.Epoch != nil {
		epoch = m.opts.Epoch(registry.ServersTag)
	}
	return m.opts.Registry.Renew(ctx, m.opts.Describe(id), m.known.since(epoch))
}

// rejoin joins under a new id. The server uses the id only after the store lists it: no janitor
// would clean up the bindings of an unlisted server. If Renew fails, the next beat tries again.
func (m *Member) rejoin(ctx context.Context) (registry.Changes, error) {
	id := m.opts.NewID()
	m.known.number = 0
	changes, err := m.renewLease(ctx, id)
	if err != nil {
		return changes, err
	}
	m.opts.Logger.Warn().Str("old", m.ID()).Str("server", id).Msg("this server was declared dead; it continues under a new id")
	m.id.Store(&id)
	return changes, nil
}

// refresh applies the changes that a beat returned, and passes the live servers to presence and to
// the links.
func (m *Member) refresh(ctx context.Context, c registry.Changes) error {
	m.known.apply(c)
	unlisted, err := m.known.readListed(ctx, m.opts.Registry, m.ID(), c.Listed)
	// Also with an error: the notification is not seen again.
	m.noteStates(c.StatesChanged)
	if err != nil {
		return err
	}
	m.setLive(m.known.live())
	m.addUnlisted(unlisted)
	return nil
}

// noteStates notes that a janitor has ended fields of this server's channels. A janitor has no
// links: it changes a number in this server's entry.
func (m *Member) noteStates(changed int64) {
	if changed != m.notified {
		m.notified = changed
		m.statesEnded.Store(true)
	}
}

// setLive replaces the live servers.
func (m *Member) setLive(live map[string]registry.Server) {
	before := m.live.Swap(&live)
	ids, former := make(map[string]bool, len(live)), []registry.Server{}
	for id, s := range live {
		ids[id] = true
		if s.Can == "" && id != m.ID() {
			former = append(former, s)
		}
	}
	m.former.Store(&former)
	m.opts.Registry.KeepChannelList(m.known.hasListReader())
	m.parts.Presence.SetLive(ids)
	m.missEarlier(*before, live)
	if m.parts.Links != nil {
		m.parts.Links.SetServers(m.Servers())
	}
}

// Find reads whether a server that was not live at the last beat has a lease now. If so, it counts
// as live from now on.
func (m *Member) Find(ctx context.Context, server string) (bool, error) {
	m.refreshing.Lock()
	defer m.refreshing.Unlock()
	if _, live := m.Live()[server]; live {
		return true, nil
	}
	s, live, err := m.opts.Registry.Lease(ctx, server)
	if err != nil || !live {
		return false, err
	}
	m.known.found(s)
	m.setLive(m.known.live())
	return true, nil
}

// Servers returns the servers that had a lease at the last beat, sorted by id. They lack their
// numbers, see Numbers.
func (m *Member) Servers() []registry.Server {
	return slices.SortedFunc(maps.Values(m.Live()), func(x, y registry.Server) int { return strings.Compare(x.ID, y.ID) })
}
