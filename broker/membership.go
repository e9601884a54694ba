package broker

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"switchboard/broker/cluster"
	"switchboard/broker/member"
	"switchboard/registry"
)

func (b *Broker) newMember() *member.Member {
	o := b.opts
	return member.New(member.Options{
		Registry: o.Store.Registry, Beat: o.Timing.Beat, Pace: comparePace, SlowPace: slowComparePace, Changed: o.Store.Changed, Epoch: o.Store.Epoch,
		NewID: func() string { return o.Name + "-" + strings.ToLower(rand.Text()[:8]) }, Describe: b.describe,
		Lost:       func(queues int) { b.metrics.losses.Add(float64(queues)) },
		Rebinding:  func() { b.metrics.rebinds.Inc() },
		ClientHint: b.clientWatches.Hint,
		Logger:     o.Logger, Log: b.log,
	})
}

// attachParts gives the parts to those that were made before them.
func (b *Broker) attachParts() {
	parts := member.Parts{Hub: b.hub, Sessions: b.sessions, Presence: b.presence, States: b.states, Pusher: b.pusher}
	if b.links != nil {
		parts.Links = b.links
	}
	b.member.Attach(parts)
	b.cluster.Attach(cluster.Parts{Sessions: b.sessions, Hub: b.hub, ClientCall: b.extensions.ClientCall})
	b.extensions.Stored = b.sessions.Stored
}

// describe returns this server's entry for the registry.
func (b *Broker) describe(id string) registry.Server {
	connections, users := b.sessions.Counts()
	return registry.Server{
		ID: id, Host: b.listeners.linkAddr, Version: b.opts.Version, StartedAt: b.member.Started(),
		Connections: int64(connections), Users: int64(users), Channels: int64(b.hub.ChannelCount()),
		Watching: int64(b.presence.WatchedUsers()),
	}
}

// lastActive returns when a server has last renewed its lease.
func (b *Broker) lastActive(ctx context.Context, server string) (time.Time, error) {
	s, _, err := b.opts.Store.Registry.Lease(ctx, server)
	return s.LastActive, err
}

// ID returns the server's current id.
func (b *Broker) ID() string { return b.member.ID() }

// Servers returns the servers that had a lease at the last beat, by id, without their numbers.
func (b *Broker) Servers() []registry.Server { return b.member.Servers() }

// Live reports whether a server had a lease at the last beat.
func (b *Broker) Live(server string) bool { return b.member.IsLive(server) }
