package session

// arrival is a client that is about to be bound here, or is bound and its session is not open yet. Its fields are
// guarded by Manager.mu.
type arrival struct {
	generation int64 // 0 while it is not bound
	missed     bool  // its queue may hold more than the binding said
}

// arrives notes that the client is about to be bound. From then on whatever is told of its queue counts.
func (m *Manager) arrives(client string) *arrival {
	m.mu.Lock()
	defer m.mu.Unlock()
	if former := m.arriving[client]; former != nil {
		former.missed = true // what comes is not noted for him any more
	}
	a := new(arrival)
	m.arriving[client] = a
	return a
}

// bound is the end of the first half.
func (m *Manager) bound(a *arrival, generation int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a.generation = generation
}

// arrived is the end of arrives, when the session is open, or is not going to be.
func (m *Manager) arrived(client string, a *arrival) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.arriving[client] == a {
		delete(m.arriving, client)
	}
}

// mustRead says whether an open session has to read its queue for the first time. Where the binding
// found it empty, in the very script that made this server the owner, and nobody has told of anything since,
// there is nothing to read: a store call and two tasks less for each that connects.
func (m *Manager) mustRead(c connected) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return c.arrival.missed || c.bound.Queued > 0 || c.bound.Last > c.bound.Acked
}

// told notes that something was told of a client for which there may be no session yet: it reads its
// queue when there is, and learns it then. It is the client's session, or nil.
func (m *Manager) told(client string) *Session {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.arriving[client]; a != nil {
		a.missed = true
	}
	return m.clients.get(client)
}

// allMissed has everyone who arrives read his queue.
func (m *Manager) allMissed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.arriving {
		a.missed = true
	}
}

// has says whether a session here has the client under that generation, or is about to.
func (m *Manager) has(client string, generation int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, a := m.clients.get(client), m.arriving[client]
	return s != nil && s.generation == generation || a != nil && a.generation == generation
}
