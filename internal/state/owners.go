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

// End records that connections have ended. The fields that have no other connected owner become
// away, or end at once if they have no grace period. A connection with a lower generation than the
// recorded one is ignored.
func (s *State) End(now int64, next func() int64, ended ...Connection) Result {
	c := s.begin(now, next)
	for _, conn := range ended {
		o := c.owners[conn.Client]
		if o == nil {
			o = &owner{server: conn.Server, fields: make(map[string]struct{})}
			c.owners[conn.Client] = o
		}
		if o.generation > conn.Generation {
			continue
		}
		o.generation, o.ended = conn.Generation, now
		for _, name := range slices.Sorted(maps.Keys(o.fields)) {
			c.checkOwners(name)
		}
	}
	return c.finish()
}

// EndServer is End for all clients that own fields and whose connection is held by the server.
func (s *State) EndServer(now int64, next func() int64, server string) Result {
	var ended []Connection
	for _, client := range slices.Sorted(maps.Keys(s.owners)) {
		if o := s.owners[client]; o.server == server && o.ended == 0 {
			ended = append(ended, Connection{client, o.generation, server})
		}
	}
	return s.End(now, next, ended...)
}

// Back records that an owner is connected, with a new generation or on a new server. Its fields are
// no longer away. ok is false if a higher generation is recorded. Back ignores a client that owns
// nothing.
func (s *State) Back(now int64, next func() int64, conn Connection) (r Result, ok bool) {
	c := s.begin(now, next)
	o := c.owners[conn.Client]
	switch {
	case o == nil:
		return c.finish(), true
	case o.generation > conn.Generation:
		return c.finish(), false
	}
	o.generation, o.server, o.ended = conn.Generation, conn.Server, 0
	for _, name := range slices.Sorted(maps.Keys(o.fields)) {
		c.checkOwners(name)
	}
	return c.finish(), true
}

// Disown ends the ownership of all fields of a connection: it has unsubscribed. A field without
// other owners ends at once. A connection with a lower generation than the recorded one is ignored.
func (s *State) Disown(now int64, next func() int64, conn Connection) Result {
	c := s.begin(now, next)
	o := c.owners[conn.Client]
	if o == nil || o.generation > conn.Generation {
		return c.finish()
	}
	for _, name := range slices.Sorted(maps.Keys(o.fields)) {
		f := c.fields[name]
		if f == nil { // it ended with its parent
			continue
		}
		if len(f.Owners) == 1 {
			for _, ended := range c.remove(name) {
				c.entry.setGone(ended, Left)
			}
			continue
		}
		c.removeOwner(name, f, conn.Client)
		c.checkOwners(name)
	}
	delete(c.owners, conn.Client)
	return c.finish()
}

// checkOwners makes an owned field away or not away, as its owners are connected or not.
func (c *change) checkOwners(name string) {
	f := c.fields[name]
	if f == nil || len(f.Owners) == 0 {
		return
	}
	connected := slices.ContainsFunc(f.Owners, func(client string) bool { return c.owners[client].ended == 0 })
	switch {
	case connected && f.Away != 0:
		c.setBack(name, f)
	case !connected && f.Away == 0 && f.Grace == 0:
		for _, ended := range c.remove(name) {
			c.entry.setGone(ended, Left)
		}
	case !connected && f.Away == 0:
		f.Away = AwayStays
		if f.Grace > 0 {
			f.Away = c.now + f.Grace
		}
		c.entry.setAway(name, f.Until())
	}
}

// setBack ends the grace period of a field.
func (c *change) setBack(name string, f *Field) {
	f.Away = 0
	c.entry.Back = append(c.entry.Back, name)
	if f.Lease > 0 {
		c.entry.setUntil(name, f.Lease)
	}
}

// addOwner makes a client an owner of a field.
func (c *change) addOwner(name string, f *Field, u *Update) {
	o := c.owners[u.Client]
	if o == nil {
		o = &owner{fields: make(map[string]struct{})}
		c.owners[u.Client] = o
	}
	o.generation, o.server, o.ended = u.Generation, u.Server, 0
	o.fields[name] = struct{}{}
	if i, found := slices.BinarySearch(f.Owners, u.Client); !found {
		f.Owners = slices.Insert(f.Owners, i, u.Client)
		c.entry.setOwners(name, f.Owners)
	}
	for _, owned := range slices.Sorted(maps.Keys(o.fields)) { // all of them: the client may have been away
		c.checkOwners(owned)
	}
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
	c.entry.setOwners(name, f.Owners)
}

// disown ends the ownership of a client, or that of all owners if client is "". A field without
// owners is no longer away.
func (c *change) disown(name string, f *Field, client string) {
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
