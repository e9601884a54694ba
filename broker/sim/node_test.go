package sim

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"switchboard/broker/delivery"
	"switchboard/broker/dialect/native"
	"switchboard/broker/hub"
	"switchboard/broker/loop"
	"switchboard/broker/member"
	"switchboard/broker/namespace"
	"switchboard/broker/peer"
	"switchboard/broker/presence"
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
	store   *store

	loops    []*loop.Loop
	pool     *work.Pool
	hub      *hub.Hub
	sessions *session.Manager
	states   *snapshot.Snapshots
	pusher   *delivery.Pusher
	member   *member.Member
	presence *presence.Presence
	*peer.Links
	listed []string // the ids of the other servers on the list; guarded by world.mu

	largeChannel int // see presence.Options; 0 means that no channel is large

	dueRuns    []func() // by loop: the run that is due, or nil
	dueWorkers []func() // workers to start

	beating     atomic.Bool
	forDriver   chan func()   // what the driver does for a planned end
	leaving     bool          // in a planned end: its links from other brokers are closed
	saidGoodbye bool          // in a planned end: to all brokers that run
	gone        chan struct{} // closed at the end of the process

	dead      bool // crashed; guarded by world.mu
	frozen    bool // the process does not run
	beatsLost bool // its beats do not reach the store

	reports map[string]int64 // by channel: the last report of an erasure that a client received

	ticks    int                  // so far
	absences map[string]*absences // by user, see absencesOf
}

func (w *world) newNode(machine string) *node {
	n := &node{w: w, machine: machine, dueRuns: make([]func(), loopsPerNode), largeChannel: pick(w, []int{0, 2}), absences: map[string]*absences{}, forDriver: make(chan func()), gone: make(chan struct{})}
	n.store = &store{w: w, node: n, name: machine}
	lost := func(int) { w.violate("%s detects a loss, but the store lost nothing", machine) }
	n.Links = peer.New(peer.Options{Self: func() string { return n.serverID() }})
	n.member = member.New(member.Options{
		Registry: n.store, NewID: n.newID, Beat: beatEvery, Lost: lost,
		Describe: func(id string) registry.Server {
			return registry.Server{ID: id, Host: machine, Watching: int64(n.presence.WatchedUsers())}
		},
	})
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
	n.hub = hub.New(hub.Options{Loops: n.loops, Pool: n.pool, Registry: n.store, Queue: n.store, ServerID: n.member.ID, Messages: native.New(0),
		Uncertain: n.member.UncertainChannel})
	n.pusher = delivery.New(delivery.Options{
		Registry: n.store, Queue: n.store, States: n.store, Self: n.member.ID, Live: n.member.IsLive,
		Local: n.member.LocalHint, Remote: n.member.Send, Stored: func(string, time.Duration) {},
		Epoch: func(string) uint64 { return 0 }, Lost: func() { lost(1) },
		MissHints: n.member.MissHints,
	})
	n.states = snapshot.New(snapshot.Options{
		Hub: n.hub, Queue: n.store, Pool: n.pool, Messages: native.New(0),
		Away: func(channel string, owners []string) { n.sessions.OwnersAway(channel, owners) },
		Sweeps: &snapshot.Sweeps{
			Self: n.member.ID, Live: n.member.IsLive, Servers: n.store.ChannelServers, Step: n.pusher.StepStates,
			KeepCheck: 2 * time.Second, Jitter: func() time.Duration { return 20 * time.Millisecond },
		},
	})
	n.presence = presence.New(presence.Options{
		Store: n.store, Pool: n.pool, Loops: n.loops, ServerID: n.member.ID, HoldsLease: n.member.Leased,
		Notify: n.member.Send, Hold: n.hub.Hold, Messages: native.New(0),
		ChannelLimits: presence.ChannelLimits{LargeChannel: n.largeChannel},
		Uncertain:     n.member.UncertainChannel,
		Members:       func(channel string) []registry.Member { return n.sessions.Members(channel) },
		Renewal:       refreshEvery, HasFormer: n.member.HasFormer,
	})
	n.presence.StopCoalescing() // its pauses only save calls
	var access session.Access
	if w.hasStates {
		rules := w.rules.set()
		access.Namespaces = func() *namespace.Set { return rules }
	}
	n.sessions = session.New(session.Options{
		Access: access, Publish: n.publish, StepStates: n.pusher.StepStates, Snapshots: n.states,
		Hub: n.hub, Pool: n.pool, Loops: n.loops, Registry: n.store, Queue: n.store, ServerID: n.member.ID,
		Presence: n.presence,
		Notify:   session.Notify{Superseded: n.member.Supersede, Acknowledged: n.member.Acknowledged, UserChanged: n.member.UserChanged, Uncertain: n.member.UncertainClient},
		Timing:   session.Timing{Connect: time.Hour, Slow: time.Hour, Refresh: refreshEvery},
	})
	n.member.Attach(member.Parts{Hub: n.hub, Sessions: n.sessions, Presence: n.presence, States: n.states, Pusher: n.pusher, Links: n})
	return n
}

func (n *node) serverID() string { return n.member.ID() }

// newID returns an id that was never used before.
func (n *node) newID() string {
	n.w.ids[n.machine]++
	return serverName(n.machine, n.w.ids[n.machine])
}

func serverName(machine string, number int) string { return fmt.Sprintf("%s.%d", machine, number) }

func (n *node) up() bool { return !n.dead && !n.frozen }

// publish does what Broker.publish does.
func (n *node) publish(ctx context.Context, p session.Publication) (session.Published, error) {
	r, err := n.pusher.ToChannel(ctx, p.Channel, delivery.Payload{Message: p.Message, Entry: p.Entry, Key: p.Key, ExistingOnly: p.ExistingOnly, Update: p.Update})
	return session.Published{ID: r.ID, New: r.New, Numbers: r.Numbers}, err
}

// pendingHint is a hint that is being sent.
type pendingHint struct {
	from string // machine
	to   *node
	peer.Hint
}

func (h pendingHint) String() string {
	kind := map[peer.Kind]string{
		peer.Channel: "channel", peer.ChannelEntry: "entry", peer.Client: "client", peer.Supersede: "supersede",
		peer.Acknowledged: "acknowledged", peer.Presence: "presence", peer.User: "user", peer.Here: "here",
	}[h.Kind]
	return fmt.Sprintf("hint %s to %s: %s %s %d after %d", h.from, h.to.machine, kind, h.Name, h.ID, h.Prev)
}

// startBeat runs one round of member.Member.Run, unless the previous one is still running.
func (n *node) startBeat() {
	n.w.settleOrphans() // a beat notifies the owners of what may have been stored
	if n.beating.CompareAndSwap(false, true) {
		go func() {
			defer n.beating.Store(false)
			n.member.Beat(context.Background())
		}()
		n.w.settle()
	}
}

// tick runs one round of Broker.tickLoop.
func (n *node) tick() {
	n.ticks++
	n.member.Tick()
	n.w.settle()
}

// sweep runs one round of Broker.sweepLoop, after hints were lost.
func (n *node) sweep() {
	go n.member.Sweep(context.Background()) // it waits for the loops
	n.w.settle()
}

// crash ends the process. Its calls get no answer, but the store may still execute them.
func (n *node) crash() {
	n.w.mu.Lock()
	n.dead, n.frozen = true, false
	n.w.mu.Unlock()
	close(n.gone)
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
	n.w.endLinks(n)
}
