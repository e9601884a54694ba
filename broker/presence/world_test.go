package presence

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/broker/dialect/native"
	"switchboard/broker/loop"
	"switchboard/broker/peer"
	"switchboard/broker/work"
	"switchboard/registry"
)

// testChannel is the channel that the watchers watch.
const testChannel = "room"

// testChannels are the channels that every client joins, so that a batch has several channels.
var testChannels = []string{testChannel, "side", "back"}

// world is a group of servers over one store.
type world struct {
	t     *testing.T
	store *registry.Memory
	rng   *rand.Rand
	live  map[string]bool
	// hasFormer is whether a server may not know which servers watch a user.
	hasFormer bool
	nodes     map[string]*node

	mu          sync.Mutex // guards losingHints, and rng while the servers run
	losingHints bool       // hints are lost
	// aliases are the aliases by user; nil if clients are shown by their ids. Guarded by mu.
	aliases map[string]string
}

// node is one server. The test changes it only while no goroutine of the servers runs.
type node struct {
	*Presence
	w     *world
	loops []*loop.Loop

	link sync.Mutex // held while a hint is delivered

	mu        sync.Mutex  // guards the fields below
	unread    []peer.Hint // hints that arrived while the server was stopped
	id        string      // changed only by the test, which reads it without the lock
	lapsed    bool        // the lease has ended and was not renewed
	stopped   chan struct{}
	members   map[string]registry.Member
	failures  int                      // how many of the next store calls fail
	failAfter bool                     // they fail after they were executed
	calls     int                      // how many store calls changed rosters
	reads     map[string]int           // by method: how many entries store calls have read
	holdUp    map[string]chan struct{} // by method or name: calls wait for it
}

// testRenewal is how often a server registers again as watching a user.
const testRenewal = 20 * time.Second

func newWorld(t *testing.T, seed uint64, large int, names ...string) *world {
	w := &world{t: t, store: registry.NewMemory(registry.Options{}), rng: rand.New(rand.NewPCG(seed, 1)), live: map[string]bool{}, nodes: map[string]*node{}}
	for _, id := range names {
		n := &node{w: w, id: id, loops: []*loop.Loop{loop.New(0), loop.New(1)}, members: map[string]registry.Member{}, reads: map[string]int{}, holdUp: map[string]chan struct{}{}}
		n.Presence = New(Options{
			Messages: native.New(0),
			Store:    faultyStore{w.store, n}, Pool: work.New(4), Loops: n.loops, ServerID: n.serverID, HoldsLease: n.leased,
			Notify: n.notify, Members: n.listMembers, ChannelLimits: ChannelLimits{LargeChannel: large},
			Renewal: testRenewal, HasFormer: func() bool { return w.hasFormer },
			Hold: func(string) func() { return func() {} }, AliasField: w.aliasField, Fields: n.readAliases,
		})
		w.nodes[id] = n
		w.live[id] = true
		for _, channel := range testChannels {
			w.check(w.store.BindChannel(t.Context(), id, channel))
		}
	}
	w.setLive()
	return w
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// setLive sets the live servers on every running server.
func (w *world) setLive() {
	for _, n := range w.nodes {
		if n.stopped == nil {
			n.SetLive(maps.Clone(w.live))
		}
	}
}

func (w *world) notify(server string, h peer.Hint) {
	w.mu.Lock()
	losing := w.losingHints
	w.mu.Unlock()
	w.delay()
	for _, n := range w.nodes {
		if !losing && n.serverID() == server {
			n.receive(h)
		}
	}
}

// receive delivers a hint. On a stopped server the hint waits in the socket.
func (n *node) receive(h peer.Hint) {
	n.link.Lock()
	defer n.link.Unlock()
	n.mu.Lock()
	stopped := n.stopped != nil
	if stopped {
		n.unread = append(n.unread, h)
	}
	n.mu.Unlock()
	if !stopped {
		n.Hint(h)
	}
}

// notify sends a hint to another server.
func (n *node) notify(server string, h peer.Hint) {
	n.waitWhileStopped()
	n.w.notify(server, h)
}

func (n *node) serverID() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.id
}

func (n *node) leased() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.lapsed
}

// waitWhileStopped waits while the server is stopped.
func (n *node) waitWhileStopped() {
	n.mu.Lock()
	stopped := n.stopped
	n.mu.Unlock()
	if stopped != nil {
		<-stopped
	}
}

// delay waits up to 3 ms of the test's clock, so that other goroutines may run first.
func (w *world) delay() {
	w.mu.Lock()
	d := time.Duration(w.rng.IntN(4)) * time.Millisecond
	w.mu.Unlock()
	time.Sleep(d)
}

func (n *node) listMembers(string) []registry.Member {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []registry.Member
	for _, m := range n.members {
		list = append(list, m)
	}
	return list
}

// join adds a client to all channels. It replaces an older connection of the client.
func (n *node) join(client, user string, generation int64) {
	m := registry.Member{Client: client, User: user, Generation: generation}
	n.mu.Lock()
	n.members[client] = m
	n.mu.Unlock()
	for _, channel := range testChannels {
		if field := n.w.aliasField(channel, user); field != "" {
			n.JoinAs(channel, field, m)
		} else {
			n.Join(channel, m)
		}
	}
}

func (n *node) leave(client string, generation int64) {
	n.mu.Lock()
	if n.members[client].Generation == generation {
		delete(n.members, client)
	}
	n.mu.Unlock()
	for _, channel := range testChannels {
		n.Leave(channel, client, generation)
	}
}

// failCalls makes the next k store calls of the server fail.
func (n *node) failCalls(k int, after bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failures, n.failAfter = k, after
}

// intn returns a random number below n.
func (w *world) intn(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// loseHints begins or ends the loss of hints. After a loss the servers compare their views with the
// store, as they do after missed heartbeats.
func (w *world) loseHints(losing bool) {
	w.mu.Lock()
	was := w.losingHints
	w.losingHints = losing
	w.mu.Unlock()
	if was && !losing {
		for _, n := range w.nodes {
			if n.stopped == nil {
				n.compareInBackground()
			}
		}
	}
}

// compareInBackground compares the views with all servers. What fails is compared again by ticks.
func (n *node) compareInBackground() {
	go func() { _ = n.Compare(context.Background(), nil, 0) }()
}

// settle waits until nothing is in progress, with three ticks in between.
func (w *world) settle() {
	for range 3 {
		w.waitASecond()
		for _, n := range w.nodes {
			if n.stopped == nil {
				n.Tick()
			}
		}
	}
	w.waitASecond()
}

// waitASecond lets a second pass and waits until nothing is in progress.
func (w *world) waitASecond() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// stored returns the clients that the store has in a channel, on the servers with those ids.
func (w *world) stored(channel string, ids ...string) (clients []string) {
	for _, id := range ids {
		r, err := w.store.Roster(w.t.Context(), id, channel)
		w.check(err)
		for _, m := range r.Members {
			clients = append(clients, m.Client)
		}
	}
	slices.Sort(clients)
	return slices.Compact(clients)
}

// liveMembers returns the clients of the live servers.
func (w *world) liveMembers() []string {
	var list []string
	for _, n := range w.nodes {
		if w.live[n.id] {
			for client := range n.members {
				list = append(list, client)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
