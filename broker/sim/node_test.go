package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"switchboard/broker/delivery"
	"switchboard/broker/dialect/native"
	"switchboard/broker/hub"
	"switchboard/broker/loop"
	"switchboard/broker/namespace"
	"switchboard/broker/peer"
	"switchboard/broker/session"
	"switchboard/broker/snapshot"
	"switchboard/broker/work"
	"switchboard/registry"
)

const (
	beatEvery    = 2 * time.Second
	refreshEvery = 7 * time.Second
	loopsPerNode = 2
)

// node is one broker. It has the parts that broker.Broker wires. The world simulates links and
// listeners.
type node struct {
	w       *world
	machine string // the host: a broker that starts again on it is a new process
	id      atomic.Pointer[string]
	store   *store

	loops    []*loop.Loop
	pool     *work.Pool
	hub      *hub.Hub
	sessions *session.Manager
	states   *snapshot.Snapshots
	pusher   *delivery.Pusher

	liveServers, endedServers map[string]bool // see refreshServers
	notified                  int64           // see membership.notified

	dueRuns    []func() // by loop: the run that is due, or nil
	dueWorkers []func() // workers to start

	joined    atomic.Bool
	beating   atomic.Bool
	rebinding atomic.Bool
	requested atomic.Int64 // number of requests to bind everything again
	completed atomic.Int64 // requests up to this number are fulfilled

	dead        bool // crashed; guarded by world.mu
	frozen      bool // the process does not run
	beatsLost   bool // its beats do not reach the store
	missedHints bool // a hint to it was lost, and it has not swept since
}

func (w *world) newNode(machine string) *node {
	n := &node{w: w, machine: machine, dueRuns: make([]func(), loopsPerNode), endedServers: map[string]bool{}}
	n.store = &store{w: w, node: n, name: machine}
	id := n.newID()
	n.id.Store(&id)
	n.requested.Store(1)
	for i := range loopsPerNode {
		l := loop.New(i)
		l.Attach(func(run func()) {
			w.mu.Lock()
			defer w.mu.Unlock()
			n.dueRuns[i] = run
		})
		n.loops = append(n.loops, l)
	}
	n.pool = work.NewOn(0, func(worker func()) {
		w.mu.Lock()
		defer w.mu.Unlock()
		n.dueWorkers = append(n.dueWorkers, worker)
	})
	n.hub = hub.New(hub.Options{Loops: n.loops, Pool: n.pool, Registry: n.store, Queue: n.store, ServerID: n.serverID, Messages: native.New(0)})
	n.pusher = delivery.New(delivery.Options{
		Registry: n.store, Queue: n.store, States: n.store, Self: n.serverID, Live: func(string) bool { return true },
		Local: n.hint, Remote: n.sendHint, Stored: func(string, time.Duration) {},
		Epoch: func() uint64 { return 0 }, Lost: func() { w.violate("%s detects a loss, but the store lost nothing", machine) },
	})
	n.states = snapshot.New(snapshot.Options{
		Hub: n.hub, Queue: n.store, Pool: n.pool, Messages: native.New(0),
		Away: func(channel string, owners []string) { n.sessions.OwnersAway(channel, owners) },
		Sweeps: &snapshot.Sweeps{
			Self: n.serverID, Live: func(string) bool { return true }, Servers: n.store.ChannelServers, Step: n.pusher.StepStates,
			KeepCheck: 2 * time.Second, Jitter: func() time.Duration { return 20 * time.Millisecond },
		},
	})
	var access session.Access
	if w.hasStates {
		rules := w.rules.set()
		access.Namespaces = func() *namespace.Set { return rules }
	}
	n.sessions = session.New(session.Options{
		Access: access, Publish: n.publish, StepStates: n.pusher.StepStates, Snapshots: n.states,
		Hub: n.hub, Pool: n.pool, Loops: n.loops, Registry: n.store, Queue: n.store, ServerID: n.serverID,
		Notify: session.Notify{Superseded: n.supersede},
		Timing: session.Timing{Connect: time.Hour, Backlog: time.Hour, Renewal: refreshEvery},
	})
	return n
}

func (n *node) serverID() string { return *n.id.Load() }

// newID returns an id that was never used before.
func (n *node) newID() string {
	n.w.ids[n.machine]++
	return serverName(n.machine, n.w.ids[n.machine])
}

func serverName(machine string, number int) string { return fmt.Sprintf("%s.%d", machine, number) }

func (n *node) up() bool { return !n.dead && !n.frozen }

// publish does what Broker.publish does.
func (n *node) publish(ctx context.Context, p session.Publication) (session.Published, error) {
	r, err := n.pusher.ToChannel(ctx, p.Channel, delivery.Payload{Data: p.Data, Key: p.Key, ExistingOnly: p.ExistingOnly, Update: p.Update})
	return session.Published{ID: r.ID, New: r.New, Numbers: r.Numbers}, err
}

// hint does what Broker.handleHint does.
func (n *node) hint(h peer.Hint) {
	switch h.Kind {
	case peer.Channel, peer.ChannelEntry:
		if c := n.hub.Channel(h.Name); c != nil {
			c.Hint(h.ID, h.Prev, h.Data)
		}
	case peer.Client:
		n.sessions.Hint(h.Name, h.ID, h.Prev, h.Data)
	case peer.Supersede:
		n.sessions.Supersede(h.Name, h.ID)
	}
}

// pendingHint is a hint that is being sent.
type pendingHint struct {
	from, to string // machine, server id
	peer.Hint
}

func (h pendingHint) String() string {
	kind := map[peer.Kind]string{peer.Channel: "channel", peer.ChannelEntry: "entry", peer.Client: "client", peer.Supersede: "supersede"}[h.Kind]
	return fmt.Sprintf("hint %s to %s: %s %s %d after %d", h.from, h.to, kind, h.Name, h.ID, h.Prev)
}

// sendHint sends a hint to another server.
func (n *node) sendHint(server string, h peer.Hint) {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	if !n.dead {
		n.w.hints = append(n.w.hints, pendingHint{n.machine, server, h})
	}
}

// supersede does what Broker.supersede does.
func (n *node) supersede(server, client string, generation int64) {
	h := peer.Hint{Kind: peer.Supersede, Name: client, ID: generation}
	if server != "" {
		n.sendHint(server, h)
		return
	}
	for _, other := range n.w.nodes {
		if other != n {
			n.sendHint(other.serverID(), h)
		}
	}
}

// startBeat runs one round of Broker.beatLoop, unless the previous one is still running.
func (n *node) startBeat() {
	n.w.settleOrphans() // a beat notifies the owners of what may have been stored
	if n.beating.CompareAndSwap(false, true) {
		go func() {
			defer n.beating.Store(false)
			n.beat()
		}()
		n.w.settle()
	}
}

// beat does what Broker.beat does.
func (n *node) beat() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*beatEvery)
	defer cancel()
	formerID, err := n.renew(ctx)
	if err == nil {
		err = n.refreshServers(ctx)
	}
	if err != nil {
		n.requested.Add(1)
		return
	}
	switch {
	case formerID != "":
		n.rebind(formerID, n.requested.Add(1))
	case n.completed.Load() != n.requested.Load():
		n.rebind("", n.requested.Load())
	default:
		_ = n.pusher.NotifyUncertain(ctx)
	}
}

// refreshServers does what Broker.refreshServers does.
func (n *node) refreshServers(ctx context.Context) error {
	servers, err := n.store.Servers(ctx)
	if err != nil {
		return err
	}
	live := make(map[string]bool)
	for _, s := range servers {
		live[s.ID] = true
		delete(n.endedServers, s.ID)
		if s.ID == n.serverID() && s.StatesChanged != n.notified {
			n.notified = s.StatesChanged
			n.hub.MarkStatesDirty()
		}
	}
	for id := range n.liveServers {
		if !live[id] {
			n.endedServers[id] = true
		}
	}
	if n.liveServers = live; len(n.endedServers) == 0 {
		return nil
	}
	listed, err := n.store.Listed(ctx)
	if err != nil {
		return err
	}
	before := len(n.endedServers)
	maps.DeleteFunc(n.endedServers, func(id string, _ bool) bool { return !slices.Contains(listed, id) })
	if len(n.endedServers) < before {
		n.hub.MarkStatesDirty()
	}
	return nil
}

// renew does what membership.renew does.
func (n *node) renew(ctx context.Context) (formerID string, err error) {
	id := n.serverID()
	if n.joined.Load() {
		err = n.store.Beat(ctx, registry.Server{ID: id, Host: n.machine})
	} else if err = n.store.Join(ctx, registry.Server{ID: id, Host: n.machine}); err == nil {
		n.joined.Store(true)
	}
	if !errors.Is(err, registry.ErrDead) {
		return "", err
	}
	next := n.newID()
	if err := n.store.Join(ctx, registry.Server{ID: next, Host: n.machine}); err != nil {
		return "", err
	}
	n.id.Store(&next)
	n.joined.Store(true)
	return id, nil
}

// rebind does what Broker.rebind does.
func (n *node) rebind(formerID string, request int64) {
	if n.rebinding.Swap(true) {
		return
	}
	go func() {
		defer n.rebinding.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if n.hub.RebindAll(ctx, formerID) != nil {
			return
		}
		n.sessions.RenewAll()
		n.hub.MarkAllDirty()
		if n.sessions.RestoreOwners(ctx) != nil {
			return
		}
		losses, err := n.pusher.Confirm(ctx)
		if losses > 0 {
			n.w.violate("%s detects a loss, but the store lost nothing", n.machine)
		}
		if err == nil {
			n.completed.Store(request)
		}
	}()
}

// tick runs one round of Broker.tickLoop.
func (n *node) tick() {
	n.hub.Tick()
	n.states.Tick()
	n.sessions.Tick()
	n.w.settle()
}

// sweep runs one round of Broker.sweepLoop, after hints were lost.
func (n *node) sweep() {
	n.missedHints = false
	n.hub.MarkAllDirty()
	go n.sessions.MarkAllDirty() // it waits for the loops
	n.w.settle()
}

// crash ends the process. Its calls get no answer, but the store may still execute them.
func (n *node) crash() {
	n.w.mu.Lock()
	n.dead, n.frozen = true, false
	n.w.mu.Unlock()
	for _, c := range n.w.conns {
		if c.node == n {
			c.processEnded()
		}
	}
	for _, c := range n.w.parked() {
		if c.node == n && !c.orphan {
			if c.orphan = true; c.stage == executed {
				n.w.removeCall(c)
			}
			c.answer <- result{nil, errDead}
			n.w.settle()
		}
	}
	n.states.Close()
	n.w.drainNode(n)
	n.w.nodes = slices.DeleteFunc(n.w.nodes, func(m *node) bool { return m == n })
	n.w.markHintsMissed()
}
