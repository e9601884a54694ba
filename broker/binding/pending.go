package binding

import "sync"

// Pending is a client from shortly before its bind call until its session is open. A hint that
// comes meanwhile finds no session: the Pending remembers it. pendingBinds.mu guards the fields.
type Pending struct {
	earlier    *Pending // of another connection of the client, whose session is not open yet
	generation int64    // 0 until the store has bound the client
	hinted     bool     // the queue may hold messages that the bind did not count
	lists      bool     // the subscriptions of the backend have perhaps changed since the bind read them
}

// pendingBinds are the clients that are being bound.
type pendingBinds struct {
	mu     sync.Mutex          // guards the fields below
	latest map[string]*Pending // of each client
}

// End ends a Pending: the session is open, or the connect failed.
func (b *Binder) End(client string, p *Pending) { b.pending.end(client, p) }

// Missed returns whether there was a hint for the client since its bind began, and whether its
// lists of the backend's subscriptions have perhaps changed. Call it after the session is open.
func (b *Binder) Missed(p *Pending) (hinted, lists bool) { return b.pending.missed(p) }

// NoteHint notes a hint for a client. If the client is being bound, its new session must read its
// queue. The caller then looks for an open session: in this order it cannot miss both.
func (b *Binder) NoteHint(client string) {
	b.pending.note(client, func(p *Pending) { p.hinted = true })
}

// NoteLists is NoteHint for a change of the lists of the backend's subscriptions.
func (b *Binder) NoteLists(client string) {
	b.pending.note(client, func(p *Pending) { p.lists = true })
}

// NoteHints makes every client that is being bound read its queue: its hint may have been lost.
func (b *Binder) NoteHints() { b.pending.noteAll() }

// begin notes that the client is about to be bound. From then on hints for it are remembered.
func (l *pendingBinds) begin(client string) *Pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &Pending{earlier: l.latest[client]}
	if p.earlier != nil {
		p.earlier.hinted, p.earlier.lists = true, true // p takes the hints from now on
	}
	if l.latest == nil {
		l.latest = make(map[string]*Pending)
	}
	l.latest[client] = p
	return p
}

// bound notes the generation under which the store has bound the client.
func (l *pendingBinds) bound(p *Pending, generation int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.generation = generation
}

func (l *pendingBinds) end(client string, p *Pending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	latest := l.latest[client]
	switch {
	case latest != p:
		for later := latest; later != nil; later = later.earlier {
			if later.earlier == p {
				later.earlier = p.earlier
			}
		}
	case p.earlier != nil:
		l.latest[client] = p.earlier
	default:
		delete(l.latest, client)
	}
}

func (l *pendingBinds) missed(p *Pending) (hinted, lists bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return p.hinted, p.lists
}

// note calls set with the latest Pending of the client, if there is one.
func (l *pendingBinds) note(client string, set func(*Pending)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.latest[client]; p != nil {
		set(p)
	}
}

func (l *pendingBinds) noteAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.latest {
		p.hinted = true
	}
}

func (l *pendingBinds) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.latest) == 0
}

// has returns whether the client has a pending bind of that generation.
func (l *pendingBinds) has(client string, generation int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := l.latest[client]; p != nil; p = p.earlier {
		if p.generation == generation {
			return true
		}
	}
	return false
}
