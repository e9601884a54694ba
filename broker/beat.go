package broker

import (
	"context"
	"time"

	"switchboard/registry"
)

// describe returns this server's entry for the registry.
func (b *Broker) describe(id string) registry.Server {
	connections, users := b.sessions.Counts()
	return registry.Server{
		ID: id, Host: b.listeners.linkAddr, Version: b.opts.Version, StartedAt: b.membership.started,
		Connections: int64(connections), Users: int64(users), Channels: int64(b.hub.ChannelCount()),
		Watching: int64(b.presence.WatchedUsers()),
	}
}

// beatLoop keeps the lease until ctx ends.
func (b *Broker) beatLoop(ctx context.Context) error {
	tick := time.NewTicker(b.opts.Timing.Beat)
	defer tick.Stop()
	for {
		b.beat(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-b.opts.Store.Changed:
			b.opts.Logger.Warn().Msg("the store restarted or failed over; this server binds everything again")
			b.rebinding.request()
		}
	}
}

// beat renews the lease, and reads the live servers and the revoked tokens. If the store may have
// lost something, beat then binds everything again. Otherwise it notifies the owners of messages
// that may have been stored without a hint. runCtx ends with the broker.
func (b *Broker) beat(runCtx context.Context) {
	ctx, cancel := context.WithTimeout(runCtx, 2*b.opts.Timing.Beat)
	defer cancel()
	formerID, err := b.membership.renew(ctx)
	if err == nil {
		err = b.refreshServers(ctx)
	}
	if err == nil {
		err = b.checkRevoked(ctx)
	}
	if runCtx.Err() != nil {
		return
	}
	b.membership.beatEnded(err)
	if err != nil {
		b.rebinding.request()
		return
	}
	if formerID != "" {
		b.rebind(runCtx, formerID, b.rebinding.request())
		return
	}
	if request, pending := b.rebinding.pending(); pending {
		b.rebind(runCtx, "", request)
		return
	}
	if err := b.pusher.NotifyUncertain(ctx); err != nil {
		b.log.Warn().Err(err).Msg("could not notify the owners of messages that may have been stored; the next beat tries again")
	}
}

// refreshServers reads the live servers and passes them to presence and to the links. A janitor
// has no links. It leaves a notification of the fields that it ends for a dead server in this
// server's entry. Then refreshServers reads the channels with states again.
func (b *Broker) refreshServers(ctx context.Context) error {
	b.refreshing.Lock()
	defer b.refreshing.Unlock()
	servers, ended, err := b.membership.refresh(ctx)
	if ended { // also with an error: the notification is not seen again
		b.hub.MarkStatesDirty()
	}
	if err != nil {
		return err
	}
	ids := make(map[string]bool, len(servers))
	for _, s := range servers {
		ids[s.ID] = true
	}
	b.presence.SetLive(ids)
	if b.links != nil {
		b.links.SetServers(servers)
	}
	return nil
}
