package broker

// TickSessions lets n seconds pass for the sessions, and returns when they have. Before that whoever
// lags behind goes on.
func (b *Broker) TickSessions(n int) {
	b.hub.Tick()
	for range n {
		b.sessions.Tick()
	}
	b.sessions.MarkAllDirty() // waits for all loops
}
