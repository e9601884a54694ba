package broker

import "switchboard/broker/snapshot"

// newSnapshots returns the Snapshots of this server.
func (b *Broker) newSnapshots() *snapshot.Snapshots {
	return snapshot.New(snapshot.Options{
		Hub: b.hub, Queue: b.opts.Store.Queue, Pool: b.pool, Messages: b.native, Logger: b.log,
		Away: func(channel string, owners []string) { b.sessions.OwnersAway(channel, owners) },
		Sweeps: &snapshot.Sweeps{
			Self: b.ID, Live: b.Live, Servers: b.opts.Store.Registry.ChannelServers, Step: b.pusher.StepStates,
			Keep: b.access.stateKeep,
		},
	})
}
