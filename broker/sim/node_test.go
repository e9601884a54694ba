package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"switchboard/broker/delivery"
	"switchboard/broker/dialect/native"
	"switchboard/broker/hub"
	"switchboard/broker/loop"
	"switchboard/broker/peer"
	"switchboard/broker/session"
	"switchboard/broker/work"
	"switchboard/registry"
)

const (
	beatEvery    = 2 * time.Second
	refreshEvery = 7 * time.Second
	loopsPerNode = 2
)

// node is one broker: what broker.Broker ties together, with links and listeners played by the world.
type node struct {
	w     *world
	slot  string // the machine: a node that starts again there is another process
	id    atomic.Pointer[string]
	store *store

	loops    []*loop.Loop
	pool     *work.Pool
	hub      *hub.Hub
	sessions *session.Manager
	pusher   *delivery.Pusher

	turns  []func() // by loop: a run that is due, or nil
	starts []func() // workers that are due

	joined, beating, asserting atomic.Bool
	doubts, settled            atomic.Int64

	dead   bool // crashed; guarded by world.mu
	paused bool // frozen
	mute   bool // its beats do not reach the store
	deaf   bool // a hint to it was lost, and no sweep has followed
}

func (w *world) newNode(slot string) *node {
	n := &node{w: w, slot: slot, turns: make([]func(), loopsPerNode)}
	n.store = &store{w: w, node: n, who: slot}
	id := n.newID()
	n.id.Store(&id)
	n.doubts.Store(1)
	for i := range loopsPerNode {
		l := loop.New(i)
		l.Attach(func(run func()) {
			w.mu.Lock()
			defer w.mu.Unlock()
			n.turns[i] = run
		})
		n.loops = append(n.loops, l)
	}
	n.pool = work.NewOn(0, func(worker func()) {
		w.mu.Lock()
		defer w.mu.Unlock()
		n.starts = append(n.starts, worker)
	})
	n.hub = hub.New(hub.Options{Loops: n.loops, Pool: n.pool, Registry: n.store, Queue: n.store, ServerID: n.serverID, Messages: native.New(0)})
	n.pusher = delivery.New(delivery.Options{
		Registry: n.store, Queue: n.store, Self: n.serverID, Live: func(string) bool { return true },
		Local: n.hint, Remote: n.tell, Stored: func(string, time.Duration) {},
		Epoch: func() uint64 { return 0 }, Lost: func() { w.violate("%s believes that the store lost messages", slot) },
	})
	n.sessions = session.New(session.Options{
		Hub: n.hub, Pool: n.pool, Loops: n.loops, Registry: n.store, Queue: n.store, ServerID: n.serverID,
		Notify: session.Notify{Superseded: n.supersede},
		Timing: session.Timing{Connect: time.Hour, Backlog: time.Hour, Renewal: refreshEvery},
	})
	return n
}

func (n *node) serverID() string { return *n.id.Load() }

// newID is an id that was never used before.
func (n *node) newID() string {
	n.w.ids[n.slot]++
	return serverName(n.slot, n.w.ids[n.slot])
}

func serverName(slot string, number int) string { return fmt.Sprintf("%s.%d", slot, number) }

func (n *node) up() bool { return !n.dead && !n.paused }

// hint is Broker.hint.
func (n *node) hint(h peer.Hint) {
	switch h.Kind {
	case peer.Channel:
		if c := n.hub.Channel(h.Name); c != nil {
			c.Hint(h.ID, h.Prev, h.Data)
		}
	case peer.Client:
		n.sessions.Hint(h.Name, h.ID, h.Prev, h.Data)
	case peer.Supersede:
		n.sessions.Supersede(h.Name, h.ID)
	}
}

// hop is a hint on its way.
type hop struct {
	from, to string // slot, server id
	peer.Hint
}

func (h hop) String() string {
	kind := map[peer.Kind]string{peer.Channel: "channel", peer.Client: "client", peer.Supersede: "supersede"}[h.Kind]
	return fmt.Sprintf("hint %s to %s: %s %s %d after %d", h.from, h.to, kind, h.Name, h.ID, h.Prev)
}

func (n *node) tell(server string, h peer.Hint) {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	if !n.dead {
		n.w.hops = append(n.w.hops, hop{n.slot, server, h})
	}
}

// supersede is Broker.supersede.
func (n *node) supersede(server, client string, generation int64) {
	h := peer.Hint{Kind: peer.Supersede, Name: client, ID: generation}
	if server != "" {
		n.tell(server, h)
		return
	}
	for _, other := range n.w.nodes {
		if other != n {
			n.tell(other.serverID(), h)
		}
	}
}

// startBeat is one turn of Broker.beatLoop, unless the one before is still under way.
func (n *node) startBeat() {
	if n.beating.CompareAndSwap(false, true) {
		go func() {
			defer n.beating.Store(false)
			n.beat()
		}()
		n.w.settle()
	}
}

// beat is Broker.beat.
func (n *node) beat() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*beatEvery)
	defer cancel()
	old := n.serverID()
	buried, err := n.renew(ctx)
	if err == nil {
		_, err = n.store.Servers(ctx)
	}
	if err != nil {
		n.doubts.Add(1)
		return
	}
	switch doubts := n.doubts.Load(); {
	case buried:
		n.doubts.Add(1)
		n.assert(old, doubts+1)
	case n.settled.Load() != doubts:
		n.assert("", doubts)
	default:
		_ = n.pusher.NotifyUncertain(ctx)
	}
}

// renew is Broker.renew.
func (n *node) renew(ctx context.Context) (buried bool, err error) {
	if n.joined.Load() {
		err = n.store.Beat(ctx, registry.Server{ID: n.serverID(), Host: n.slot})
	} else if err = n.store.Join(ctx, registry.Server{ID: n.serverID(), Host: n.slot}); err == nil {
		n.joined.Store(true)
	}
	if !errors.Is(err, registry.ErrDead) {
		return false, err
	}
	next := n.newID()
	if err := n.store.Join(ctx, registry.Server{ID: next, Host: n.slot}); err != nil {
		return false, err
	}
	n.id.Store(&next)
	n.joined.Store(true)
	return true, nil
}

// assert is Broker.assert.
func (n *node) assert(old string, doubts int64) {
	if n.asserting.Swap(true) {
		return
	}
	go func() {
		defer n.asserting.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if n.hub.RebindAll(ctx, old) != nil {
			return
		}
		n.sessions.Assert()
		n.hub.MarkAllDirty()
		losses, err := n.pusher.Confirm(ctx)
		if losses > 0 {
			n.w.violate("%s believes that the store lost messages", n.slot)
		}
		if err == nil {
			n.settled.Store(doubts)
		}
	}()
}

// tick is one turn of Broker.tickLoop.
func (n *node) tick() {
	n.hub.Tick()
	n.sessions.Tick()
	n.w.settle()
}

// sweep is one turn of Broker.sweepLoop, with hints lost.
func (n *node) sweep() {
	n.deaf = false
	n.hub.MarkAllDirty()
	go n.sessions.MarkAllDirty() // it waits for the loops
	n.w.settle()
}

// crash ends the process: of its calls only what is on the way to the store remains.
func (n *node) crash() {
	n.w.mu.Lock()
	n.dead, n.paused = true, false
	n.w.mu.Unlock()
	for _, c := range n.w.conns {
		if c.node == n {
			c.lost()
		}
	}
	for _, c := range n.w.parked() {
		if c.node == n && !c.orphan {
			if c.orphan = true; c.stage == executed {
				n.w.drop(c)
			}
			c.answer <- result{nil, errDead}
			n.w.settle()
		}
	}
	n.w.bringToRest(n)
	n.w.nodes = slices.DeleteFunc(n.w.nodes, func(m *node) bool { return m == n })
	n.w.deafen()
}
