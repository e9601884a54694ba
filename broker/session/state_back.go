package session

// OwnersAway is called with clients whose fields of a channel are away. If such a client is
// connected to this server and sees the state, then the state that its subscribe looked at was
// older than these fields, or than a change of theirs. OwnersAway stores that the client is back.
func (m *Manager) OwnersAway(channel string, clients []string) {
	for _, client := range clients {
		if s := m.clients.get(client); s != nil {
			s.shard.loop.Post(func() {
				if s.state == open && s.stateSubscription(channel) != nil {
					s.storeBack(channel)
				}
			})
		}
	}
}

// checkBack stores that the client is back if it owns fields of which its subscribe did not know.
// Fields of which this server learns later are reported by OwnersAway.
func (s *Session) checkBack(channel string) {
	if o := s.ownership(channel); o != nil && o.isOwner() {
		return
	}
	if s.state == open && s.m.opts.Snapshots.Owns(channel, s.client) {
		s.storeBack(channel)
	}
}

// storeBack has the pool store that the client is back. If that fails, RestoreOwners tries again.
func (s *Session) storeBack(channel string) {
	o := s.ensureOwnership(channel)
	o.beginSubscribe()
	s.m.opts.Pool.Go(func() {
		if err := s.m.owners.storeBack(s.m.storeContext(), o); err != nil {
			s.m.opts.Logger.Warn().Err(err).Msg("the return of an owner of fields is not stored")
		}
		s.m.owners.endSubscribe(o, true)
		s.shard.loop.Post(func() { s.dropUnusedOwnership(o) })
	})
}
