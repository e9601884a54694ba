package presence

import (
	"sync"
	"sync/atomic"

	"switchboard/internal/state"
	"switchboard/registry"
)

// aliasTable holds the channels that show aliases, with this server's clients there.
type aliasTable struct {
	count atomic.Int32 // of channels: in a server without aliases, a leave checks only this

	mu          sync.Mutex // guards the fields below and all that they refer to; it is locked last
	channels    map[string]*aliasChannel
	lastVersion int // of all users
}

// aliasChannel holds this server's clients in a channel that shows aliases.
type aliasChannel struct {
	table   *aliasTable
	clients map[string]aliasClient // by client
	users   map[string]*aliasUser  // by the field with their alias
	shown   map[string]*shownAlias // by alias
	changed map[string]struct{}    // aliases whose entry in the roster may be wrong

	changing int                 // calls of changeAliases that read the members
	touched  map[string]struct{} // clients that joined or left meanwhile; nil if changing is 0
}

// aliasClient is one connection.
type aliasClient struct {
	field      string // of its user
	generation int64
}

// aliasUser is a user with at least one client. The alias is that of the field when it was read.
type aliasUser struct {
	name    string
	alias   string // empty for none
	clients int
	version int // another one when the field may have changed; no two users have the same
	read    int // the version at which alias was read; 0 for never
}

// shownAlias is an alias that at least one user has, or had when the roster was written.
type shownAlias struct {
	user    string // one of them
	users   int
	written string // the user that it has in the roster, as far as this server knows; empty for none
}

// FieldRead asks for fields of one channel.
type FieldRead struct {
	Channel string
	Fields  []string
	Texts   []string // the answer: the value of each field if it is a JSON string, otherwise ""
	Err     error    // or why there is none

	versions []int
}

// showsAliases reports whether the namespace of the channel has a field with aliases.
func (p *Presence) showsAliases(channel string) bool {
	return p.opts.AliasField != nil && p.opts.AliasField(channel, "") != ""
}

// JoinAs is Join in a channel that shows aliases. field holds the alias of the client's user. A
// user without an alias is no member.
func (p *Presence) JoinAs(channel, field string, m registry.Member) {
	t := &p.aliases
	t.mu.Lock()
	t.getOrCreate(channel).join(field, m)
	t.mu.Unlock()
	p.requestAliases(channel)
}

// leaveAlias is Leave in a channel that shows aliases. It returns false if the client did not join
// with JoinAs.
func (p *Presence) leaveAlias(channel, client string, generation int64) bool {
	if p.aliases.count.Load() == 0 || !p.aliases.beginLeave(channel, client) {
		return false
	}
	p.EndHere(channel, client, generation) // it needs the alias
	t := &p.aliases
	t.mu.Lock()
	if c := t.channels[channel]; c != nil { // otherwise new access rules have ended the aliases
		c.leave(client, generation)
	}
	t.mu.Unlock()
	p.requestAliases(channel)
	return true
}

// requestAliases has the roster of a channel updated.
func (p *Presence) requestAliases(channel string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pendingLocked(channel).aliases = true
}

// FieldsChanged reports a change of the state of a channel, or that changes may have been missed if
// e is nil. It does not block.
func (p *Presence) FieldsChanged(channel string, e *state.Entry) {
	t := &p.aliases
	if t.count.Load() == 0 {
		return
	}
	t.mu.Lock()
	c := t.channels[channel]
	changed := c != nil && c.invalidate(e)
	t.mu.Unlock()
	if changed {
		p.opts.Pool.Go(func() { p.requestAliases(channel) }) // the caller holds a lock
	}
}

// aliasOf returns the alias of a client of this server, or "". ready is false if it must be read.
func (p *Presence) aliasOf(channel, client string) (alias string, ready bool) {
	t := &p.aliases
	if t.count.Load() == 0 {
		return "", true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.channels[channel]
	if c == nil {
		return "", true
	}
	u := c.users[c.clients[client].field]
	if u == nil {
		return "", true
	}
	return u.alias, u.read == u.version
}

// beginLeave reports whether the client has joined with JoinAs.
func (t *aliasTable) beginLeave(channel, client string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.channels[channel]
	if c == nil {
		return false
	}
	c.touch(client)
	_, known := c.clients[client]
	return known
}

// getOrCreate returns the channel. The caller holds mu.
func (t *aliasTable) getOrCreate(channel string) *aliasChannel {
	c := t.channels[channel]
	if c == nil {
		c = newAliasChannel(t)
		if t.channels == nil {
			t.channels = map[string]*aliasChannel{}
		}
		t.channels[channel] = c
		t.count.Add(1)
	}
	return c
}

// newAliasChannel returns a channel without clients.
func newAliasChannel(t *aliasTable) *aliasChannel {
	return &aliasChannel{
		table: t, clients: map[string]aliasClient{}, users: map[string]*aliasUser{},
		shown: map[string]*shownAlias{}, changed: map[string]struct{}{},
	}
}

// nextVersion returns a new version. A user that leaves and comes back has another one, so that the
// answer to an old read is dropped. The caller holds mu.
func (t *aliasTable) nextVersion() int {
	t.lastVersion++
	return t.lastVersion
}

// remove removes a channel. The caller holds mu.
func (t *aliasTable) remove(channel string) {
	if t.channels[channel] != nil {
		delete(t.channels, channel)
		t.count.Add(-1)
	}
}

// touch notes that changeAliases may have read a client before it joined or left.
func (c *aliasChannel) touch(client string) {
	if c.touched != nil {
		c.touched[client] = struct{}{}
	}
}

// join adds a client, or updates it.
func (c *aliasChannel) join(field string, m registry.Member) {
	c.touch(m.Client)
	before, known := c.clients[m.Client]
	if known && before.generation > m.Generation {
		return
	}
	c.clients[m.Client] = aliasClient{field, m.Generation}
	if known && before.field == field {
		return
	}
	u := c.users[field]
	if u == nil {
		u = &aliasUser{name: m.User, version: c.table.nextVersion()}
		c.users[field] = u
	}
	u.clients++
	if known {
		c.dropClient(before.field)
	}
}

// leave removes a client, unless it has a newer connection.
func (c *aliasChannel) leave(client string, generation int64) {
	before, known := c.clients[client]
	if known && before.generation <= generation {
		delete(c.clients, client)
		c.dropClient(before.field)
	}
}

// dropClient removes one client of the user with a field.
func (c *aliasChannel) dropClient(field string) {
	u := c.users[field]
	if u.clients--; u.clients == 0 {
		c.setAlias(u, "")
		delete(c.users, field)
	}
}

// setAlias changes the alias of a user.
func (c *aliasChannel) setAlias(u *aliasUser, alias string) {
	if u.alias == alias {
		return
	}
	before := u.alias
	u.alias = alias
	if before != "" {
		c.dropUser(before, u)
	}
	if alias == "" {
		return
	}
	s := c.shown[alias]
	if s == nil {
		s = &shownAlias{}
		c.shown[alias] = s
	}
	if s.users++; s.users == 1 {
		s.user = u.name
	}
	c.changed[alias] = struct{}{}
}

// dropUser notes that a user no longer has an alias.
func (c *aliasChannel) dropUser(alias string, u *aliasUser) {
	s := c.shown[alias]
	c.changed[alias] = struct{}{}
	if s.users--; s.users == 0 || s.user != u.name {
		return
	}
	for _, other := range c.users {
		if other.alias == alias {
			s.user = other.name
			return
		}
	}
}

// invalidate notes which aliases an entry may have changed, all of them if it is nil, and reports
// whether there are any.
func (c *aliasChannel) invalidate(e *state.Entry) (found bool) {
	if e == nil || e.Cleared {
		for _, u := range c.users {
			u.version = c.table.nextVersion()
		}
		return len(c.users) > 0
	}
	touch := func(field string) {
		if u := c.users[field]; u != nil {
			u.version = c.table.nextVersion()
			found = true
		}
	}
	for field := range e.Set {
		touch(field)
	}
	for field := range e.Gone {
		touch(field)
	}
	for _, field := range e.Del {
		touch(field)
	}
	return found
}
