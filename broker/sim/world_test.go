package sim

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"switchboard/internal/wire"
	"switchboard/janitor"
	"switchboard/queue"
	"switchboard/registry"
)

// profile is the kind of faults in a run.
type profile uint8

const (
	calm  profile = iota // no faults: hints are late, repeated or out of order
	lossy                // hints are lost
	shaky                // and store calls fail, and brokers end as planned
	harsh                // and brokers crash, freeze and are declared dead
)

func (p profile) String() string { return [...]string{"calm", "lossy", "shaky", "harsh"}[p] }

// epoch is the start of a run's clock. It is later than the epoch of the ids.
var epoch = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

var channelNames = []string{"news", "chat"}

// world is one run.
type world struct {
	seed      uint64
	profile   profile
	rng       *rand.Rand
	trace     []string
	violation string  // the first violation
	weights   [20]int // how likely each kind of step is in this run

	registry *registry.Memory
	queue    *queue.Memory
	janitor  *janitor.Janitor
	cleaning bool // a round of the janitor is in progress
	model    *model

	machines   []string
	nodes      []*node        // the brokers that have not crashed, sorted by machine
	ids        map[string]int // how many server ids each machine has used
	clients    map[string]*client
	hasStates  bool // channels have fields in this run
	rules      stateRules
	healed     bool          // all faults have ended, and some time has passed
	clockAhead time.Duration // of the queue's clock, before the others
	clockLag   time.Duration // of what brokers know of the queue's clock
	names      []string      // of the clients, in order
	conns      []*conn
	dialed     int // connections so far
	pushes     []*push
	erasures   []*erasure
	storeDown  bool
	anyEnded   bool // a broker has ended as planned

	links []*simLink
	hints []pendingHint // that have arrived, and are not handled yet

	executing *call // the call that execute runs
	callCount int
	received  map[*conn][]string // events received in this step

	// mu guards the fields below, node.dueRuns, node.dueWorkers and node.dead. The driver also uses
	// them without mu, while all other goroutines wait.
	mu      sync.Mutex
	calls   []*call
	expired []*call // calls whose deadline had passed when they began
	ended   bool
}

func newWorld(seed uint64) *world {
	w := &world{
		seed: seed, profile: profile(seed % 4), rng: rand.New(rand.NewPCG(seed, 0x5157)),
		hasStates: seed/4%2 == 1, ids: map[string]int{}, clients: map[string]*client{}, received: map[*conn][]string{},
	}
	for i := range w.weights { // with equal weights, all runs would test the same
		w.weights[i] = []int{1, 3, 9}[w.rng.IntN(3)]
	}
	time.Sleep(time.Until(epoch))
	limits := queue.Options{Now: w.storeTime}
	if w.hasStates {
		w.rules = newStateRules(w)
	}
	if w.rng.IntN(3) == 0 {
		limits.ClientCap = 3 + w.rng.IntN(4)
	}
	if w.rng.IntN(4) == 0 {
		limits.ChannelCap = 3 + w.rng.IntN(4)
	}
	w.model = newModel(w)
	w.registry = registry.NewMemory(registry.Options{})
	w.queue = queue.NewMemory(limits, w.owners)
	var err error
	cleaner := &store{w: w, name: "janitor"}
	w.janitor, err = janitor.New(janitor.Options{
		Registry: cleaner, Queue: cleaner, MaxCount: 1 + w.rng.IntN(5),
		Probe: w.probe,
	})
	if err != nil {
		panic(err)
	}
	for i := range 2 + w.rng.IntN(2) {
		w.machines = append(w.machines, fmt.Sprintf("b%d", i+1))
	}
	users := []string{"ann", "ben", pick(w, []string{"", "ann"}), "ann"}
	for i := range 3 + w.rng.IntN(2) {
		name := wire.ClientID(users[i], fmt.Sprintf("c%d", i+1))
		w.names = append(w.names, name)
		w.clients[name] = &client{
			w: w, name: name, user: users[i], auto: i == 3,
			position: map[string]int64{}, seen: map[int64]struct{}{}, lost: map[int64]struct{}{}, held: map[string]*held{},
		}
	}
	w.log("seed %d: %v, caps %d and %d, states %v %+v", seed, w.profile, limits.ClientCap, limits.ChannelCap, w.hasStates, w.rules)
	for _, machine := range w.machines {
		w.boot(machine)
		w.runLeaseCalls()
	}
	for _, n := range w.nodes { // now they learn of each other
		n.startBeat()
		w.runLeaseCalls()
	}
	w.openLinks()
	return w
}

// boot starts a broker on a machine without one.
func (w *world) boot(machine string) *node {
	n := w.newNode(machine)
	w.log("%s starts as %s", machine, n.serverID())
	w.nodes = append(w.nodes, n)
	slices.SortFunc(w.nodes, func(a, b *node) int { return strings.Compare(a.machine, b.machine) })
	n.startBeat()
	return n
}

func (w *world) node(machine string) *node {
	for _, n := range w.nodes {
		if n.machine == machine {
			return n
		}
	}
	return nil
}

// faulty reports whether store calls may fail in this run.
func (w *world) faulty() bool { return w.profile >= shaky }

func (w *world) log(format string, args ...any) {
	w.flushEvents()
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

// recordEvent records an event that a connection received. In the trace, events are grouped by
// connection: two loops may run in any order, and there is no order across queues.
func (w *world) recordEvent(c *conn, e wire.Event) {
	w.received[c] = append(w.received[c], fmt.Sprintf("    %v <- %s", c, toJSON(e)))
}

func (w *world) flushEvents() {
	if len(w.received) == 0 {
		return
	}
	for _, c := range w.conns {
		slices.SortStableFunc(w.received[c], comparePresence)
		w.trace = append(w.trace, w.received[c]...)
	}
	clear(w.received)
}

// comparePresence orders the lines of presence events. Those of several channels have no order.
func comparePresence(a, b string) int {
	if strings.Contains(a, `"type":"presence"`) && strings.Contains(b, `"type":"presence"`) {
		return strings.Compare(a, b)
	}
	return 0
}

// violate records the violation of an invariant. The run ends with this step.
func (w *world) violate(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.violation == "" {
		w.violation = fmt.Sprintf(format, args...)
	}
}

// failed reports whether an invariant was violated.
func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.violation != ""
}

// hash returns a hash of the trace.
func (w *world) hash() uint64 {
	h := fnv.New64a()
	for _, line := range w.trace {
		_, _ = h.Write([]byte(line + "\n"))
	}
	return h.Sum64()
}

// settle runs everything that needs no decision of the driver. Workers start one by one, in the
// order in which they were requested, a nanosecond apart. So the scheduler does not decide which
// one gets the per-client lock first or reaches its deadline first. For the same reason, calls
// whose deadline has passed fail one by one.
func (w *world) settle() {
	for {
		synctest.Wait()
		if c := w.nextExpired(); c != nil {
			c.answer <- result{nil, context.DeadlineExceeded}
			continue
		}
		start := w.nextStart()
		if start == nil {
			return
		}
		time.Sleep(time.Nanosecond)
		go start()
	}
}

// sortHints sorts the hints. A server sends the hints of one change in the order of a map.
func (w *world) sortHints() {
	slices.SortStableFunc(w.hints, func(a, b pendingHint) int { return strings.Compare(a.String(), b.String()) })
}

func (w *world) nextExpired() *call {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.expired) == 0 {
		return nil
	}
	c := slices.MinFunc(w.expired, (*call).compare)
	w.expired = slices.DeleteFunc(w.expired, func(d *call) bool { return d == c })
	return c
}

func (w *world) nextStart() func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		if len(n.dueWorkers) > 0 && !n.frozen {
			start := n.dueWorkers[0]
			n.dueWorkers = n.dueWorkers[1:]
			return start
		}
	}
	return nil
}

// loopRun is a loop that has something to run.
type loopRun struct {
	node *node
	loop int
}

func (w *world) dueRuns() (due []loopRun) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		for i, run := range n.dueRuns {
			if run != nil && !n.frozen {
				due = append(due, loopRun{n, i})
			}
		}
	}
	return due
}

func (w *world) runLoop(t loopRun) {
	w.mu.Lock()
	run := t.node.dueRuns[t.loop]
	t.node.dueRuns[t.loop] = nil
	w.mu.Unlock()
	w.log("loop %s/%d", t.node.machine, t.loop)
	run()
	w.settle()
}

// drainNode runs the remaining jobs and tasks of a node that has ended. Its store calls fail at
// once.
func (w *world) drainNode(n *node) {
	for {
		w.settle()
		again := false
		for i := range n.dueRuns {
			w.mu.Lock()
			run := n.dueRuns[i]
			n.dueRuns[i] = nil
			w.mu.Unlock()
			if run != nil {
				run()
				again = true
			}
		}
		if !again {
			return
		}
	}
}

// stop ends every goroutine of the run.
func (w *world) stop() {
	w.flushEvents()
	w.mu.Lock()
	w.ended = true
	calls := slices.Concat(w.calls, w.expired)
	w.calls, w.expired = nil, nil
	w.mu.Unlock()
	for _, c := range calls {
		for c.stage == halfExecuted {
			c.proceed <- struct{}{}
			synctest.Wait()
		}
		if !c.orphan {
			c.answer <- result{nil, errDead}
		}
	}
	for _, n := range w.nodes {
		n.frozen = false
		close(n.gone)
		n.states.Close()
	}
	for _, n := range w.nodes {
		w.drainNode(n)
	}
	synctest.Wait()
}
