package session

import (
	"hash/maphash"
	"slices"
	"sync"

	"switchboard/internal/wire"
)

// clientTable maps client ids to their open sessions. It is a hash table of pointers with open
// addressing (Knuth, The Art of Computer Programming, vol. 3, 6.4, algorithms L and R). The key is
// in the session already, so the table does not store it: 15 bytes per session at 10,000 sessions,
// where a Go map takes 56. localClients.mu guards it.
type clientTable struct {
	seed  maphash.Seed
	tags  []uint8    // per slot: 0 if it is empty, else 8 bits of the hash, to skip most comparisons of ids
	slots []*Session // its length is a power of two
	count int
}

// minSlots is the initial number of slots.
const minSlots = 16

func newClientTable() clientTable {
	return clientTable{seed: maphash.MakeSeed(), tags: make([]uint8, minSlots), slots: make([]*Session, minSlots)}
}

// home returns the slot at which the search for client begins, and the client's tag.
func (t *clientTable) home(client string) (i int, tag uint8) {
	h := maphash.String(t.seed, client)
	return int(h) & (len(t.slots) - 1), uint8(h>>56) | 1
}

// find returns the slot of client, or the empty slot where it belongs.
func (t *clientTable) find(client string) (i int, tag uint8) {
	i, tag = t.home(client)
	for t.tags[i] != 0 && (t.tags[i] != tag || t.slots[i].client != client) {
		i = (i + 1) & (len(t.slots) - 1)
	}
	return i, tag
}

// get returns the session of client, or nil.
func (t *clientTable) get(client string) *Session {
	i, _ := t.find(client)
	return t.slots[i]
}

// put makes s the session of its client.
func (t *clientTable) put(s *Session) {
	if t.count >= len(t.slots)/4*3 {
		t.resize(2 * len(t.slots))
	}
	i, tag := t.find(s.client)
	if t.slots[i] == nil {
		t.count++
	}
	t.tags[i], t.slots[i] = tag, s
}

// remove deletes the session of client.
func (t *clientTable) remove(client string) {
	i, _ := t.find(client)
	if t.slots[i] == nil {
		return
	}
	mask := len(t.slots) - 1
	for j := (i + 1) & mask; t.tags[j] != 0; j = (j + 1) & mask {
		// Slot i is empty now. An entry whose search passes i must move there, or find would miss
		// it.
		if home, _ := t.home(t.slots[j].client); (j-home)&mask >= (j-i)&mask {
			t.tags[i], t.slots[i] = t.tags[j], t.slots[j]
			i = j
		}
	}
	t.tags[i], t.slots[i] = 0, nil
	if t.count--; t.count < len(t.slots)/8 && len(t.slots) > minSlots {
		t.resize(len(t.slots) / 2)
	}
}

func (t *clientTable) resize(n int) {
	old := t.slots
	t.tags, t.slots, t.count = make([]uint8, n), make([]*Session, n), 0
	for _, s := range old {
		if s != nil {
			t.put(s)
		}
	}
}

// localClients knows the clients with an open session on this server. The loops and the pool's
// workers use it.
type localClients struct {
	mu    sync.Mutex     // guards the fields below
	open  clientTable    // the open sessions
	users map[string]int // the number of open sessions of each user
}

func newLocalClients() localClients {
	return localClients{open: newClientTable(), users: make(map[string]int)}
}

// add makes s the session of its client and closes the session that s replaces. If a session with a
// later generation is open, it adds nothing and returns false.
func (c *localClients) add(s *Session) bool {
	replaced, ok := c.replace(s)
	if replaced != nil {
		replaced.shard.loop.Post(func() {
			replaced.close(wire.CloseSuperseded, "", 0)
		})
	}
	return ok
}

// replace is add without the close. It returns the session that s replaces, or nil.
func (c *localClients) replace(s *Session) (replaced *Session, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.open.get(s.client)
	if old != nil && old.generation > s.generation {
		return nil, false
	}
	c.open.put(s)
	if user := s.user(); user != "" {
		c.users[user]++
	}
	if old != nil {
		c.userGoneLocked(old)
	}
	return old, true
}

// remove deletes s, unless another session has replaced it.
func (c *localClients) remove(s *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open.get(s.client) == s {
		c.open.remove(s.client)
		c.userGoneLocked(s)
	}
}

func (c *localClients) userGoneLocked(s *Session) {
	user := s.user()
	if user == "" {
		return
	}
	if c.users[user]--; c.users[user] == 0 {
		delete(c.users, user)
	}
}

// get returns the open session of client, or nil.
func (c *localClients) get(client string) *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open.get(client)
}

// userCount returns how many users have an open session.
func (c *localClients) userCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.users)
}

// known returns those of the users that have an open session.
func (c *localClients) known(users []string) (known []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, user := range users {
		if c.users[user] > 0 {
			known = append(known, user)
		}
	}
	return known
}

// sessions returns the open sessions. It copies a table of pointers: at a million sessions, that
// holds the lock for about a millisecond.
func (c *localClients) sessions() []*Session {
	c.mu.Lock()
	size := len(c.open.slots)
	c.mu.Unlock()
	for {
		list := make([]*Session, size) // without the lock
		c.mu.Lock()
		if size = len(c.open.slots); size == len(list) {
			copy(list, c.open.slots)
			c.mu.Unlock()
			return slices.DeleteFunc(list, func(s *Session) bool { return s == nil })
		}
		c.mu.Unlock()
	}
}
