package linear

import (
	"maps"
	"slices"

	"switchboard/internal/state"
	"switchboard/queue"
)

// session is what the model knows of a client that owns or has owned fields.
type session struct {
	generation int64
	server     string // "" if the generation has ended for good
	ended      bool
}

// fences reports whether a connection is too old to change the state. The generation of a client of
// a broker is not known, and counts as new.
func (s session) fences(conn state.Connection) bool {
	switch {
	case conn.Generation == unknownGeneration || s.generation < conn.Generation:
		return false
	case s.generation > conn.Generation:
		return true
	}
	return s.ended && (s.server == "" || s.server == conn.Server)
}

// unknownGeneration is the generation of the clients of brokers.
const unknownGeneration = -1

// contents are the fields and the owners of the channel. Steps work on a clone.
type contents struct {
	fields   map[string]field // also those that are due, until an entry removes them
	sessions map[string]session
}

func (c contents) clone() contents {
	return contents{cloned(c.fields), cloned(c.sessions)}
}

// cloned is maps.Clone, and never returns nil.
func cloned[V any](m map[string]V) map[string]V {
	if m == nil {
		return make(map[string]V)
	}
	return maps.Clone(m)
}

// remove removes a field and its parts.
func (c contents) remove(name string) {
	delete(c.fields, name)
	for part, f := range c.fields {
		if f.parent == name {
			c.remove(part)
		}
	}
}

// expire removes the fields that are due.
func (c contents) expire(now int64) {
	for name, f := range c.fields {
		if f.due(now) {
			c.remove(name)
		}
	}
}

// ownedBy returns the fields of an owner.
func (c contents) ownedBy(client string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(c.fields)) {
		if slices.Contains(c.fields[name].owners, client) {
			names = append(names, name)
		}
	}
	return names
}

// checkOwners makes the fields away, ends their grace, or removes them, as their owners are
// connected or not.
func (c contents) checkOwners(now int64, names ...string) {
	for _, name := range names {
		f, found := c.fields[name]
		if !found || len(f.owners) == 0 {
			continue
		}
		isConnected := func(client string) bool { return !c.sessions[client].ended }
		switch connected := slices.ContainsFunc(f.owners, isConnected); {
		case connected:
			f.away = 0
		case f.away != 0:
		case f.grace == 0:
			c.remove(name)
			continue
		case f.grace > 0:
			f.away = now + f.grace
		default:
			f.away = state.AwayStays
		}
		c.fields[name] = f
	}
}

// connect records that an owner is connected.
func (c contents) connect(conn state.Connection, now int64) {
	c.sessions[conn.Client] = session{generation: conn.Generation, server: conn.Server}
	c.checkOwners(now, c.ownedBy(conn.Client)...)
}

// end records that a connection has ended.
func (c contents) end(conn state.Connection, now int64) {
	if s := c.sessions[conn.Client]; s.generation <= conn.Generation || conn.Generation == unknownGeneration {
		c.sessions[conn.Client] = session{generation: conn.Generation, ended: true}
		c.checkOwners(now, c.ownedBy(conn.Client)...)
	}
}

// endServer records that all connections of a server have ended.
func (c contents) endServer(server string, now int64) {
	for _, client := range slices.Sorted(maps.Keys(c.sessions)) {
		if s := c.sessions[client]; s.server == server && !s.ended {
			s.ended = true
			c.sessions[client] = s
			c.checkOwners(now, c.ownedBy(client)...)
		}
	}
}

// unsubscribe ends the ownership of all fields of a connection. Fields whose grace never ends stay,
// and are away if they have no other connected owner.
func (c contents) unsubscribe(conn state.Connection, now int64) {
	s, found := c.sessions[conn.Client]
	if !found || s.generation > conn.Generation {
		return
	}
	for _, name := range c.ownedBy(conn.Client) {
		f, found := c.fields[name]
		switch {
		case !found || f.grace == state.AwayStays: // it has ended with its parent, or it stays
		case len(f.owners) == 1:
			c.remove(name)
		default:
			f.owners = without(f.owners, conn.Client)
			c.fields[name] = f
			c.checkOwners(now, name)
		}
	}
	if s.generation < conn.Generation || !s.ended {
		c.sessions[conn.Client] = session{generation: conn.Generation - 1, ended: true}
	}
	c.checkOwners(now, c.ownedBy(conn.Client)...)
}

// disown ends the ownership of a client, or of all clients if client is "". A field without owners
// is no longer away.
func (c contents) disown(name, client string, now int64) {
	f, found := c.fields[name]
	if !found { // it has ended with a parent of the same update
		return
	}
	if f.owners = without(f.owners, client); client == "" {
		f.owners = nil
	}
	if len(f.owners) == 0 {
		f.grace, f.away = 0, 0
	}
	c.fields[name] = f
	c.checkOwners(now, name)
}

// without returns a copy of list without name.
func without(list []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(one string) bool { return one == name })
}

// take takes a step of an owner at the time now. It reports whether the step is stale.
func (c contents) take(step queue.StateStep, now int64) (stale bool) {
	c.expire(now)
	switch step.Kind {
	case queue.OwnerEnded:
		c.end(step.Conn, now)
	case queue.ServerEnded:
		c.endServer(step.Conn.Server, now)
	case queue.OwnerUnsubscribed:
		c.unsubscribe(step.Conn, now)
	case queue.OwnerBack:
		s, found := c.sessions[step.Conn.Client]
		if stale = found && s.fences(step.Conn); found && !stale {
			c.connect(step.Conn, now)
		}
	}
	return stale
}

// ownerStep returns the model after a step of an owner. An optional step only changes what no entry
// shows: its entry, if it has one, is an unknown call.
func (s *snapshot) ownerStep(c *call) *snapshot {
	now := s.clock
	next := s
	if c.appended.ID != 0 {
		if next = s.entry(c.appended); next == nil {
			return nil
		}
		now = next.clock
	}
	after := s.contents.clone()
	stale := after.take(c.step, now)
	changed := !maps.EqualFunc(s.fields, after.fields, field.looksLike)
	switch {
	case c.optional:
		if changed {
			return s
		}
	case stale != c.stale, changed != (c.appended.ID != 0):
		return nil
	}
	copied := *next
	copied.contents = after
	return &copied
}

// unknown returns the model after an entry that no answered call has appended: the entry of one of
// c.candidates, or of a sweep.
func (s *snapshot) unknown(c *call) *snapshot {
	next := s.entry(c.appended)
	if next == nil {
		return nil
	}
	for _, steps := range append([][]queue.StateStep{nil}, c.candidates...) {
		after := s.contents.clone()
		after.expire(next.clock)
		for _, step := range steps {
			after.take(step, next.clock)
		}
		if s.showsChanges(c.entry, after.fields) {
			copied := *next
			copied.contents = after
			return &copied
		}
	}
	return nil
}

// showsChanges reports whether an entry names the fields that differ after a step, and how.
func (s *snapshot) showsChanges(e *state.Entry, after map[string]field) bool {
	gone, away, back := 0, 0, 0
	for name, before := range s.fields {
		f, found := after[name]
		switch {
		case !found:
			if gone++; e.Gone[name] == "" {
				return false
			}
		case before.away == 0 && f.away != 0:
			if until, shown := e.Away[name]; !shown || until != f.until() {
				return false
			}
			away++
		case before.away != 0 && f.away == 0:
			if !slices.Contains(e.Back, name) {
				return false
			}
			back++
		case !slices.Equal(before.owners, f.owners) && e.Own[name] == nil:
			return false
		}
	}
	return gone == len(e.Gone) && away == len(e.Away) && back == len(e.Back)
}
