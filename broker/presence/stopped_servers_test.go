package presence

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
)

// TestStoppedServers stops servers in the middle of their work, until their leases end or until
// they are declared dead and cleaned up. Then they continue, under the same id or a new one. The
// watchers on all servers must see each join and leave once, and the store must keep nothing of
// dead servers.
func TestStoppedServers(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runStoppedServers(t, seed) })
		})
	}
}

// stoppingWorld is a world in which servers stop.
type stoppingWorld struct {
	*world
	location      map[string]connection // each client's last connection
	lastNumber    int64                 // last used in a generation or server id
	delayedLeaves map[*node][]func()    // the leaves that stopped servers notice when they continue
	dead          []string
}

// connection is a client's connection to a server.
type connection struct {
	server     string // its name, which is its first id
	generation int64
}

func runStoppedServers(t *testing.T, seed uint64) {
	w := newWorld(t, seed, 1000, "a", "b", "c")
	c := &stoppingWorld{world: w, location: map[string]connection{}, delayedLeaves: map[*node][]func(){}}
	names := []string{"a", "b", "c"}
	watchers := map[string]*testWatcher{}
	for _, name := range names {
		watchers[name] = w.nodes[name].watch("watcher of " + name)
	}
	for range 60 {
		name := names[w.intn(3)]
		n, client := w.nodes[name], fmt.Sprint("client-", w.intn(6))
		switch w.intn(12) {
		case 0, 1, 2, 3:
			c.connect(client, name)
		case 4, 5:
			c.disconnect(client)
		case 6:
			if n.stopped == nil {
				n.mu.Lock()
				n.stopped = make(chan struct{})
				n.mu.Unlock()
			}
		case 7:
			c.expireLease(n)
		case 8:
			c.declareDead(n)
		case 9:
			c.resume(n)
		case 10:
			w.delay()
		case 11:
			w.settle()
			for _, name := range names {
				if c.isCurrent(w.nodes[name]) {
					watchers[name].expect(w.liveMembers())
				}
			}
		}
	}
	for _, name := range names {
		c.resume(w.nodes[name])
	}
	w.settle()
	members := w.liveMembers()
	for _, name := range names {
		watchers[name].expect(members)
	}
	ids := []string{w.nodes["a"].id, w.nodes["b"].id, w.nodes["c"].id}
	for _, channel := range testChannels {
		if stored := w.stored(channel, ids...); !slices.Equal(stored, members) {
			t.Errorf("%s: the store has %v, want %v", channel, stored, members)
		}
		if left := w.stored(channel, c.dead...); len(left) > 0 {
			t.Errorf("%s: the store still has %v of the dead servers %v", channel, left, c.dead)
		}
	}
}

// isCurrent reports whether the watchers of a server should know the current members: it is
// running, and so is each other server that holds a lease.
func (c *stoppingWorld) isCurrent(n *node) bool {
	for _, other := range c.nodes {
		if other.stopped != nil && (other == n || !other.lapsed) {
			return false
		}
	}
	return true
}

// connect connects a client to a server and ends its earlier connection.
func (c *stoppingWorld) connect(client, name string) {
	n := c.nodes[name]
	if n.stopped != nil {
		return
	}
	before, was := c.location[client]
	c.lastNumber++
	n.join(client, "user", c.lastNumber)
	c.location[client] = connection{name, c.lastNumber}
	if was {
		c.endConnection(client, before)
	}
}

// disconnect ends the client's connection.
func (c *stoppingWorld) disconnect(client string) {
	if at, connected := c.location[client]; connected {
		delete(c.location, client)
		c.endConnection(client, at)
	}
}

// endConnection ends a connection. A stopped server notices it when it continues.
func (c *stoppingWorld) endConnection(client string, at connection) {
	n := c.nodes[at.server]
	leave := func() { n.leave(client, at.generation) }
	if n.stopped != nil {
		c.delayedLeaves[n] = append(c.delayedLeaves[n], leave)
		return
	}
	leave()
}

// expireLease ends the lease of a stopped server.
func (c *stoppingWorld) expireLease(n *node) {
	if n.stopped == nil || n.lapsed {
		return
	}
	n.mu.Lock()
	n.lapsed = true
	n.mu.Unlock()
	delete(c.live, n.id)
	c.setLive()
}

// declareDead declares a server without a lease dead and removes what it held.
func (c *stoppingWorld) declareDead(n *node) {
	if !n.lapsed || slices.Contains(c.dead, n.id) {
		return
	}
	_, err := c.store.DeclareDead(c.t.Context(), n.id)
	c.check(err)
	for _, channel := range testChannels {
		c.check(c.store.UnbindChannel(c.t.Context(), n.id, channel))
	}
	c.dead = append(c.dead, n.id)
}

// resume lets a server continue. Its pending calls and its next beat come in random order.
func (c *stoppingWorld) resume(n *node) {
	if n.stopped == nil {
		return
	}
	n.link.Lock()
	close(n.stopped)
	n.mu.Lock()
	waiting := n.unread
	n.unread, n.stopped = nil, nil
	n.mu.Unlock()
	if c.intn(2) == 0 { // an unreliable link reorders and repeats hints
		slices.Reverse(waiting)
		waiting = slices.Concat(waiting, waiting)
	}
	go func() {
		defer n.link.Unlock()
		for _, h := range waiting {
			n.Hint(h)
		}
	}()
	for _, leave := range c.delayedLeaves[n] {
		leave()
	}
	delete(c.delayedLeaves, n)
	if c.intn(2) == 0 {
		c.delay()
	}
	old, ctx := n.id, c.t.Context()
	declaredDead := slices.Contains(c.dead, old)
	n.mu.Lock()
	if n.lapsed = false; declaredDead {
		c.lastNumber++
		n.id = fmt.Sprint(old, "-", c.lastNumber)
	}
	n.mu.Unlock()
	c.live[n.id] = true
	c.setLive()
	n.compareInBackground() // as after missed heartbeats
	if declaredDead {
		for _, channel := range testChannels {
			c.check(c.store.UnbindChannel(ctx, old, channel))
			c.check(c.store.BindChannel(ctx, n.id, channel))
		}
		n.Resync(testChannels, nil)
	}
}
