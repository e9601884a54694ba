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

// node is one broker. It has the parts that broker.Broker wires; the world plays links and
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
	pusher   *delivery.Pusher

	dueRuns    []func() // by loop: the run that is due, or nil
	dueWorkers []func() // workers to start

	joined, beating, asserting atomic.Bool
	doubts, settled            atomic.Int64

	dead        bool // crashed; guarded by world.mu
	frozen      bool // the process does not run
	beatsLost   bool // its beats do not reach the store
	missedHints bool // a hint to it was lost, and it has not swept since
}

func (w *world) newNode(machine string) *node {
	n := &node{w: w, machine: machine, dueRuns: make([]func(), loopsPerNode)}
	n.store = &store{w: w, node: n, name: machine}
	id := n.newID()
	n.id.Store(&id)
	n.doubts.Store(1)
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
		Registry: n.store, Queue: n.store, Self: n.serverID, Live: func(string) bool { return true },
		Local: n.hint, Remote: n.sendHint, Stored: func(string, time.Duration) {},
		Epoch: func() uint64 { return 0 }, Lost: func() { w.violate("%s detects a loss, but the store lost nothing", machine) },
	})
	n.sessions = session.New(session.Options{
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

// hint does what Broker.hint does.
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

// pendingHint is a hint that is being sent.
type pendingHint struct {
	from, to string // machine, server id
	peer.Hint
}

func (h pendingHint) String() string {
	kind := map[peer.Kind]string{peer.Channel: "channel", peer.Client: "client", peer.Supersede: "supersede"}[h.Kind]
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

// renew does what Broker.renew does.
func (n *node) renew(ctx context.Context) (buried bool, err error) {
	if n.joined.Load() {
		err = n.store.Beat(ctx, registry.Server{ID: n.serverID(), Host: n.machine})
	} else if err = n.store.Join(ctx, registry.Server{ID: n.serverID(), Host: n.machine}); err == nil {
		n.joined.Store(true)
	}
	if !errors.Is(err, registry.ErrDead) {
		return false, err
	}
	next := n.newID()
	if err := n.store.Join(ctx, registry.Server{ID: next, Host: n.machine}); err != nil {
		return false, err
	}
	n.id.Store(&next)
	n.joined.Store(true)
	return true, nil
}

// assert does what Broker.assert does.
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
		n.sessions.RenewAll()
		n.hub.MarkAllDirty()
		losses, err := n.pusher.Confirm(ctx)
		if losses > 0 {
			n.w.violate("%s detects a loss, but the store lost nothing", n.machine)
		}
		if err == nil {
			n.settled.Store(doubts)
		}
	}()
}

// tick runs one round of Broker.tickLoop.
func (n *node) tick() {
	n.hub.Tick()
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

// crash ends the process. Of its calls, only those that are being executed go on.
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
	n.w.drainNode(n)
	n.w.nodes = slices.DeleteFunc(n.w.nodes, func(m *node) bool { return m == n })
	n.w.loseAllHints()
}
