package state

import (
	"maps"
	"slices"
)

// Connection is a client's connection, as far as the ownership of fields is concerned.
type Connection struct {
	Client     string
	Generation int64
	Server     string
}

// End records that connections have ended for good: [State.Back] refuses their generations from
// now on. The fields that have no other connected owner become away, which begins their grace
// period, or end at once if they have none. A connection with a lower generation than the recorded
// one is ignored.
func (s *State) End(now int64, next func() int64, ended ...Connection) Result {
	c := s.begin(now, next)
	for _, conn := range ended {
		o := c.owners[conn.Client]
		if o == nil {
			o = &owner{fields: make(map[string]struct{})}
			c.owners[conn.Client] = o
		}
		if o.generation <= conn.Generation {
			o.generation, o.server = conn.Generation, ""
			c.disconnect(o)
		}
	}
	return c.finish()
}

// EndServer is like End for all owners whose connection is on a server that was declared dead. But
// [State.Back] accepts the same generations from a server with another id: a server that was not
// dead goes on with a new id.
func (s *State) EndServer(now int64, next func() int64, server string) Result {
	c := s.begin(now, next)
	for _, client := range slices.Sorted(maps.Keys(c.owners)) {
		if o := c.owners[client]; o.server == server && o.ended == 0 {
			c.disconnect(o)
		}
	}
	return c.finish()
}

// disconnect records that an owner is not connected.
func (c *change) disconnect(o *owner) {
	o.ended = c.now
	c.checkOwned(o)
}

// connect records that an owner is connected.
func (c *change) connect(o *owner, generation int64, server string) {
	o.generation, o.server, o.ended = generation, server, 0
	c.checkOwned(o)
}

// checkOwned calls checkOwners for all fields of an owner.
func (c *change) checkOwned(o *owner) {
	for _, name := range slices.Sorted(maps.Keys(o.fields)) {
		c.checkOwners(name)
	}
}

// Back records that an owner is connected, with a new generation or on a new server. Its fields are
// no longer away. ok is false if the connection is too old: a higher generation is recorded, or
// this one has ended. Back ignores a client that owns nothing.
func (s *State) Back(now int64, next func() int64, conn Connection) (r Result, ok bool) {
	c := s.begin(now, next)
	o := c.owners[conn.Client]
	if ok = !o.fences(conn.Generation, conn.Server); ok && o != nil {
		c.connect(o, conn.Generation, conn.Server)
	}
	return c.finish(), ok
}

// Disown ends the ownership of all fields of a connection that has unsubscribed. A field without
// other owners ends at once. A field whose Grace is AwayStays stays, and keeps the client as an
// owner that is not connected. A connection with a lower generation than the recorded one is
// ignored.
func (s *State) Disown(now int64, next func() int64, conn Connection) Result {
	c := s.begin(now, next)
	o := c.owners[conn.Client]
	if o == nil || o.generation > conn.Generation {
		return c.finish()
	}
	for _, name := range slices.Sorted(maps.Keys(o.fields)) {
		f := c.fields.get(name)
		switch {
		case f == nil || f.Grace == AwayStays: // it has ended with its parent, or it stays
		case len(f.Owners) == 1:
			c.end(name, Left)
		default:
			c.removeOwner(name, f, conn.Client)
			c.checkOwners(name)
		}
	}
	// Lower generations may not own fields again, but this connection may.
	if o.generation < conn.Generation || o.ended == 0 {
		o.generation, o.server, o.ended = conn.Generation-1, "", now
	}
	c.checkOwned(o) // those that stay
	return c.finish()
}

// checkOwners makes an owned field away if no owner is connected, and not away if one is. A field
// without a grace period ends instead.
func (c *change) checkOwners(name string) {
	f := c.fields.get(name)
	if f == nil || len(f.Owners) == 0 {
		return
	}
	connected := slices.ContainsFunc(f.Owners, func(client string) bool { return c.owners[client].ended == 0 })
	switch {
	case connected && f.Away != 0:
		c.setBack(name, f)
	case !connected && f.Away == 0 && f.Grace == 0:
		c.end(name, Left)
	case !connected && f.Away == 0:
		f.Away = AwayStays
		if f.Grace > 0 {
			f.Away = c.now + f.Grace
		}
		c.endChanged(f.Lease, f.Until())
		c.grow(len(name))
		c.entry.setAway(name, f.Until())
	}
}

// setBack makes a field no longer away.
func (c *change) setBack(name string, f *Field) {
	c.endChanged(f.Until(), f.Lease)
	f.Away = 0
	c.grow(2 * len(name)) // in entry.Back and entry.Until
	c.entry.Back = append(c.entry.Back, name)
	if delete(c.entry.Until, name); f.Lease > 0 {
		c.entry.setUntil(name, f.Lease)
	}
}

// addOwner makes a client an owner of the field of an operation. It returns false if the field is
// gone: an earlier operation of the update has disowned its parent, which ended with its children.
func (c *change) addOwner(op *Op, client string) bool {
	f := c.fields.get(op.Field)
	if f == nil {
		return false
	}
	f.Grace = op.Grace.Milliseconds()
	if op.Grace < 0 {
		f.Grace = AwayStays
	}
	o := c.owners[client]
	if o == nil {
		o = &owner{fields: make(map[string]struct{})}
		c.owners[client] = o
	}
	o.fields[op.Field] = struct{}{}
	if i, found := slices.BinarySearch(f.Owners, client); !found {
		f.Owners = slices.Insert(f.Owners, i, client)
		c.entry.setOwners(op.Field, f.Owners)
	}
	return true
}

// removeOwner ends the ownership of one client. It does not change whether the field is away.
func (c *change) removeOwner(name string, f *Field, client string) {
	i, found := slices.BinarySearch(f.Owners, client)
	if !found {
		return
	}
	f.Owners = slices.Delete(f.Owners, i, i+1)
	if len(f.Owners) == 0 {
		f.Owners = nil
	}
	delete(c.owners[client].fields, name)
	size := len(name)
	for _, owner := range f.Owners {
		size += len(owner) + len(`"",`)
	}
	c.grow(size)
	c.entry.setOwners(name, f.Owners)
}

// disown ends the ownership of a field by a client, or by all owners if client is "". A field
// without owners is not owned any more: it is not away, and has no grace period.
func (c *change) disown(name, client string) {
	f := c.fields.get(name)
	if f == nil { // it has ended with its parent, see addOwner
		return
	}
	for _, owner := range slices.Clone(f.Owners) {
		if client == "" || client == owner {
			c.removeOwner(name, f, owner)
		}
	}
	if len(f.Owners) > 0 {
		c.checkOwners(name)
		return
	}
	f.Grace = 0
	if f.Away != 0 {
		c.setBack(name, f)
	}
}
