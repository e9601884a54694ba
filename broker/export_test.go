package broker

import (
	"context"

	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sync/errgroup"
)

// TickSessions advances the clock of the sessions by n seconds, after it has resumed lagging
// subscribers. It returns when all event loops are done.
func (b *Broker) TickSessions(n int) {
	b.hub.Tick()
	for range n {
		b.sessions.Tick()
	}
	_ = b.sessions.Compare(context.Background(), 0) // waits for all loops
}

// CompareQueues compares the queues of all channels and clients with the store.
func (b *Broker) CompareQueues(ctx context.Context) error {
	var both errgroup.Group
	both.Go(func() error { return b.hub.Compare(ctx, 0) })
	both.Go(func() error { return b.sessions.Compare(ctx, 0) })
	return both.Wait()
}

// WatchCount returns the number of calls that wait for messages of a channel.
func (b *Broker) WatchCount(channel string) int { return b.hub.WatchCount(channel) }

// Delivered returns the metric of messages written to sockets, which each tick updates.
func (b *Broker) Delivered() int {
	var m dto.Metric
	_ = b.metrics.delivered.Write(&m)
	return int(m.GetCounter().GetValue())
}
