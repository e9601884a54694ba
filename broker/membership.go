package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"switchboard/registry"
)

// beatsPerLease: a lease outlives four beats that went wrong.
const beatsPerLease = 5

// assertTimeout bounds binding all channels again.
const assertTimeout = 30 * time.Second

// newID is a server id that was never used before.
func newID(name string) string {
	return name + "-" + strings.ToLower(rand.Text()[:8])
}

// serverID is this server's id of now: it changes when the server was declared dead.
func (b *Broker) serverID() string { return *b.id.Load() }

// describe is this server as the others see it.
func (b *Broker) describe() registry.Server {
	connections, users := b.sessions.Counts()
	return registry.Server{
		ID: b.serverID(), Host: b.host, Version: b.opts.Version, StartedAt: b.started,
		Connections: int64(connections), Users: int64(users), Channels: int64(b.hub.ChannelCount()),
		Watching: int64(b.presence.WatchedUsers()),
	}
}

// beatLoop keeps the lease until ctx ends.
func (b *Broker) beatLoop(ctx context.Context) error {
	tick := time.NewTicker(b.opts.Beat)
	defer tick.Stop()
	for {
		b.beat(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-b.opts.StoreChanged:
			b.opts.Logger.Warn().Msg("the store restarted or failed over; everything is asserted again")
			b.doubts.Add(1)
		}
	}
}

// beat is one round: renew the lease, look who is there, and after any doubt about the
// store assert again what this server holds.
func (b *Broker) beat(running context.Context) {
	ctx, cancel := context.WithTimeout(running, 2*b.opts.Beat)
	defer cancel()
	old, began := b.serverID(), time.Since(b.started)
	buried, err := b.renew(ctx)
	if err == nil {
		b.renewing.Store(began.Nanoseconds())
		err = b.look(ctx)
	}
	if running.Err() != nil {
		return
	}
	if err != nil {
		b.doubts.Add(1)
		if !b.complained.Swap(true) {
			b.opts.Logger.Error().Err(err).Msg("the store cannot be reached; pushes are refused until it is back")
		}
		return
	}
	b.complained.Store(false)
	b.renewed.Store(time.Since(b.started).Nanoseconds())
	switch doubts := b.doubts.Load(); {
	case buried:
		b.doubts.Add(1)
		b.assert(running, old, doubts+1)
	case b.settled.Load() != doubts:
		b.assert(running, "", doubts)
	default:
		if err := b.pusher.NotifyUncertain(ctx); err != nil {
			b.log.Warn().Err(err).Msg("owners not told of messages that may have been stored; the next beat tries")
		}
	}
}

// renew renews the lease. A server that was declared dead takes a new id: it never gets
// the old one back.
func (b *Broker) renew(ctx context.Context) (buried bool, err error) {
	if b.joined.Load() {
		err = b.opts.Registry.Beat(ctx, b.describe())
	} else if err = b.opts.Registry.Join(ctx, b.describe()); err == nil {
		b.joined.Store(true)
		b.opts.Logger.Info().Str("server", b.serverID()).Str("host", b.host).Msg("joined")
	}
	if !errors.Is(err, registry.ErrDead) { // a Join may be told so too, when the answer of one before was lost
		return false, err
	}
	// The id is used when the store lists it, and not before: what an unknown server binds nobody cleans.
	next := b.describe()
	next.ID = newID(b.opts.Name)
	if err := b.opts.Registry.Join(ctx, next); err != nil {
		return false, err // the next beat finds the tombstone again
	}
	b.opts.Logger.Warn().Str("old", b.serverID()).Str("server", next.ID).Msg("this server was declared dead; it goes on under a new id")
	b.id.Store(&next.ID)
	b.joined.Store(true)
	return true, nil
}

// look notes who is alive.
func (b *Broker) look(ctx context.Context) error {
	servers, err := b.opts.Registry.Servers(ctx)
	if err != nil {
		return err
	}
	live := make(map[string]registry.Server, len(servers))
	for _, s := range servers {
		live[s.ID] = s
	}
	b.live.Store(&live)
	b.presence.SetLive(leased(live))
	if b.peers != nil {
		b.peers.SetServers(servers)
	}
	return nil
}

// assert binds again all that this server holds, and reads every queue. Then the doubts up to
// this one are settled; old is the id of before, if the server was declared dead. It goes on
// beside the beats, which must not wait: with many clients it takes seconds.
func (b *Broker) assert(running context.Context, old string, doubts int64) {
	if b.asserting.Swap(true) {
		return // a later beat finds the doubt unsettled
	}
	b.background.Go(func() {
		defer b.asserting.Store(false)
		ctx, cancel := context.WithTimeout(running, assertTimeout)
		defer cancel()
		if err := b.hub.RebindAll(ctx, old); err != nil {
			b.log.Warn().Err(err).Msg("channels not bound again; a later beat tries")
			return
		}
		b.sessions.Assert()
		b.presence.Resync(b.hub.ChannelNames())
		b.hub.MarkAllDirty()
		losses, err := b.pusher.Confirm(ctx)
		if err != nil {
			b.log.Warn().Err(err).Msg("not everything confirmed that was stored before; a later beat tries")
			return
		}
		if losses > 0 {
			b.metrics.losses.Add(float64(losses))
			b.opts.Logger.Error().Int("queues", losses).Msg("the store has lost messages that it had acknowledged; their receivers are told")
		}
		b.settled.Store(doubts)
	})
}

func leased(servers map[string]registry.Server) map[string]bool {
	ids := make(map[string]bool, len(servers))
	for id := range servers {
		ids[id] = true
	}
	return ids
}

// leased says whether this server's lease cannot have ended: it was renewed so lately.
func (b *Broker) leased() bool {
	return b.joined.Load() && time.Since(b.started)-time.Duration(b.renewing.Load()) < beatsPerLease*b.opts.Beat
}

// Servers are the live ones (api.Cluster).
func (b *Broker) Servers() []registry.Server {
	live := *b.live.Load()
	return slices.SortedFunc(maps.Values(live), func(x, y registry.Server) int { return strings.Compare(x.ID, y.ID) })
}

// Live says whether a server has a lease, as of the last beat (api.Cluster).
func (b *Broker) Live(server string) bool {
	_, ok := (*b.live.Load())[server]
	return ok
}

// notReady says why this server cannot serve.
func (b *Broker) notReady() unready {
	age := time.Since(b.started) - time.Duration(b.renewed.Load())
	switch {
	case b.draining.Load():
		return unready{step: stepDraining, reason: "draining"}
	case !b.joined.Load():
		return unready{step: stepJoin, reason: "the store has not been reached yet"}
	case age > beatsPerLease*b.opts.Beat:
		return unready{step: stepLease, reason: "the lease ran out: the store has not been reached for " + age.Round(time.Second).String()}
	case b.settled.Load() != b.doubts.Load():
		return unready{step: stepBind, reason: "the store cannot be reached, or what is held here was not bound again since"}
	}
	if why := b.doors.tokens.Load().Unready(); why != "" {
		return unready{step: stepTokenKeys, reason: why}
	}
	return unready{}
}
