package broker

import "context"

// TickSessions advances the clock of the sessions by n seconds, after it has resumed lagging
// subscribers. It returns when all event loops are done.
func (b *Broker) TickSessions(n int) {
	b.hub.Tick()
	for range n {
		b.sessions.Tick()
	}
	_ = b.sessions.Compare(context.Background(), 0) // waits for all loops
}

// WatchCount returns the number of calls that wait for messages of a channel.
func (b *Broker) WatchCount(channel string) int { return b.hub.WatchCount(channel) }
