package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"switchboard/registry"
)

// beatsPerLease is the length of a lease in beats: it survives four failed beats.
const beatsPerLease = 5

// leaveTimeout bounds the removal from the registry at the end.
const leaveTimeout = 5 * time.Second

// membership is this server's entry in the registry: its id and its lease. It also holds the other
// live servers, as of the last beat.
type membership struct {
	registry serverRegistry
	name     string
	lease    time.Duration
	describe func(id string) registry.Server // this server's entry with its current numbers
	log      zerolog.Logger
	started  time.Time

	id         atomic.Pointer[string] // a server that was declared dead takes a new id
	live       atomic.Pointer[map[string]registry.Server]
	notified   int64 // StatesChanged of this server at the last refresh; only refresh uses it
	joined     atomic.Bool
	leaseStart atomic.Int64        // ns since started: when the last successful renewal began
	ended      map[string]struct{} // servers that lost their lease and may still be listed; only refresh uses it
	lastBeat   atomic.Int64        // ns since started: when the last successful beat ended
	failing    atomic.Bool         // the last beat failed, which is logged once
}

func newMembership(o Options, describe func(id string) registry.Server) *membership {
	m := &membership{
		registry: o.Store.Registry, name: o.Name, lease: beatsPerLease * o.Timing.Beat,
		describe: describe, log: o.Logger, started: time.Now(), ended: make(map[string]struct{}),
	}
	id := newServerID(o.Name)
	m.id.Store(&id)
	m.live.Store(&map[string]registry.Server{})
	return m
}

// newServerID returns a server id that was never used before.
func newServerID(name string) string {
	return name + "-" + strings.ToLower(rand.Text()[:8])
}

func (m *membership) serverID() string { return *m.id.Load() }

// renew joins the registry, or renews the lease. A server that was declared dead never gets its id
// back: it joins under a new one, and renew returns the former id.
func (m *membership) renew(ctx context.Context) (formerID string, err error) {
	id, began := m.serverID(), time.Since(m.started)
	if m.joined.Load() {
		err = m.registry.Beat(ctx, m.describe(id))
	} else if err = m.registry.Join(ctx, m.describe(id)); err == nil {
		m.joined.Store(true)
		m.log.Info().Str("server", id).Str("host", m.describe(id).Host).Msg("joined")
	}
	// Join may return ErrDead too: the answer to an earlier Join was lost, and the lease ended since.
	if errors.Is(err, registry.ErrDead) {
		formerID, err = id, m.rejoin(ctx)
	}
	if err != nil {
		return "", err
	}
	m.leaseStart.Store(began.Nanoseconds())
	return formerID, nil
}

// rejoin joins under a new id. The server uses the id only after the store lists it: no janitor
// would clean up the bindings of an unlisted server. If Join fails, the next beat tries again.
func (m *membership) rejoin(ctx context.Context) error {
	id := newServerID(m.name)
	if err := m.registry.Join(ctx, m.describe(id)); err != nil {
		return err
	}
	m.log.Warn().Str("old", m.serverID()).Str("server", id).Msg("this server was declared dead; it continues under a new id")
	m.id.Store(&id)
	m.joined.Store(true)
	return nil
}

// refresh reads the live servers from the registry. ended reports whether a janitor may have ended
// fields of this server's channels: it has notified this server, or a server that was live before
// is no longer listed. The latter is for a janitor that was killed before it notified.
func (m *membership) refresh(ctx context.Context) (servers []registry.Server, ended bool, err error) {
	servers, err = m.registry.Servers(ctx)
	if err != nil {
		return nil, false, err
	}
	live := make(map[string]registry.Server, len(servers))
	for _, s := range servers {
		live[s.ID] = s
		delete(m.ended, s.ID)
	}
	if self, ok := live[m.serverID()]; ok && self.StatesChanged != m.notified {
		m.notified, ended = self.StatesChanged, true
	}
	for id := range *m.live.Swap(&live) {
		if _, ok := live[id]; !ok {
			m.ended[id] = struct{}{}
		}
	}
	if len(m.ended) == 0 {
		return servers, ended, nil
	}
	listed, err := m.registry.Listed(ctx)
	if err != nil {
		return nil, ended, err
	}
	before := len(m.ended)
	maps.DeleteFunc(m.ended, func(id string, _ struct{}) bool { return !slices.Contains(listed, id) })
	return servers, ended || len(m.ended) < before, nil
}

// beatEnded records the outcome of a beat and logs the first of several failures.
func (m *membership) beatEnded(err error) {
	if err == nil {
		m.failing.Store(false)
		m.lastBeat.Store(time.Since(m.started).Nanoseconds())
	} else if !m.failing.Swap(true) {
		m.log.Error().Err(err).Msg("the store cannot be reached; pushes are refused until it is back")
	}
}

// leased reports whether the lease is certain to hold: its last renewal is recent enough.
func (m *membership) leased() bool {
	return m.joined.Load() && time.Since(m.started)-time.Duration(m.leaseStart.Load()) < m.lease
}

// isLive reports whether a server had a lease at the last beat. The first beat of this server has
// not read the list of servers yet when the lease begins.
func (m *membership) isLive(server string) bool {
	_, listed := (*m.live.Load())[server]
	return listed || server == m.serverID() && m.leased()
}

// sinceBeat returns the time since the last successful beat.
func (m *membership) sinceBeat() time.Duration {
	return time.Since(m.started) - time.Duration(m.lastBeat.Load())
}

// leave removes the server from the registry. If that fails, its lease ends and a janitor cleans
// up.
func (m *membership) leave() {
	if !m.joined.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := m.registry.Leave(ctx, m.serverID()); err != nil {
		m.log.Warn().Err(err).Msg("could not leave the registry; the janitor will clean up")
		return
	}
	m.log.Info().Str("server", m.serverID()).Msg("left")
}

// ID returns the server's current id.
func (b *Broker) ID() string { return b.membership.serverID() }

// Servers implements api.Cluster: it returns the live servers by id.
func (b *Broker) Servers() []registry.Server {
	live := *b.membership.live.Load()
	return slices.SortedFunc(maps.Values(live), func(x, y registry.Server) int { return strings.Compare(x.ID, y.ID) })
}

// Live implements api.Cluster: it reports whether a server had a lease at the last beat.
func (b *Broker) Live(server string) bool { return b.membership.isLive(server) }
