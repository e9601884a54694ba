package broker

import (
	"switchboard/broker/delivery"
	"switchboard/broker/snapshot"
)

// stateStore holds the methods of a queue that keeps the states of channels.
type stateStore interface {
	delivery.States
	snapshot.Queue
}

// newSnapshots returns the states of the channels with subscribers here, or nil if the store keeps
// none.
func (b *Broker) newSnapshots() *snapshot.Snapshots {
	states, ok := b.opts.Store.Queue.(stateStore)
	if !ok {
		return nil
	}
	return snapshot.New(snapshot.Options{
		Hub: b.hub, Queue: states, Pool: b.pool, Messages: b.native, Logger: b.log,
		Sweeps: &snapshot.Sweeps{
			Self: b.ID, Live: b.Live, Servers: b.opts.Store.Registry.ChannelServers, Step: b.pusher.StepStates,
		},
	})
}
