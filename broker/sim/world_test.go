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

// profile is what may go wrong in a run.
type profile uint8

const (
	calm  profile = iota // nothing: hints are late, repeated or out of order
	lossy                // hints get lost
	shaky                // and calls of the store fail
	harsh                // and brokers crash, freeze and are declared dead
)

func (p profile) String() string { return [...]string{"calm", "lossy", "shaky", "harsh"}[p] }

// epoch is where the clock of a run begins: behind the epoch of the ids.
var epoch = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

var channelNames = []string{"news", "chat"}

// world is one run.
type world struct {
	seed    uint64
	profile profile
	rng     *rand.Rand
	trace   []string
	broken  string  // the first violation
	swarm   [16]int // how much this run likes each kind of step

	registry *registry.Memory
	queue    *queue.Memory
	janitor  *janitor.Janitor
	cleaning bool // a round of the janitor is under way
	model    *model

	slots   []string
	nodes   []*node // the processes that live, in order of their slots
	ids     map[string]int
	clients map[string]*client
	names   []string // of clients
	conns   []*conn
	dialed  int
	pushes  []*push
	away    bool // the store
	healing bool // the end: nothing goes wrong any more

	executing *call
	arrivals  int
	news      map[*conn][]string // heard in this step

	mu    sync.Mutex // guards the fields below, node.turns, node.starts and node.dead
	calls []*call
	late  []*call // asked for when the caller's time was over
	hops  []hop
	over  bool
}

func newWorld(seed uint64) *world {
	w := &world{
		seed: seed, profile: profile(seed % 4), rng: rand.New(rand.NewPCG(seed, 0x5157)),
		ids: map[string]int{}, clients: map[string]*client{}, news: map[*conn][]string{},
	}
	for i := range w.swarm { // runs that all do a little of everything would all find the same
		w.swarm[i] = []int{1, 3, 9}[w.rng.IntN(3)]
	}
	time.Sleep(time.Until(epoch))
	limits := queue.Options{}
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
	cleaner := &store{w: w, who: "janitor"}
	w.janitor, err = janitor.New(janitor.Options{
		Registry: cleaner, Queue: cleaner, MaxCount: 1 + w.rng.IntN(5),
		Probe: w.answers,
	})
	if err != nil {
		panic(err)
	}
	for i := range 2 + w.rng.IntN(2) {
		w.slots = append(w.slots, fmt.Sprintf("b%d", i+1))
	}
	users := []string{"ann", "ben", pick(w, []string{"", "ann"}), "ann"}
	for i := range 3 + w.rng.IntN(2) {
		name := wire.ClientID(users[i], fmt.Sprintf("c%d", i+1))
		w.names = append(w.names, name)
		w.clients[name] = &client{
			w: w, name: name, user: users[i], auto: i == 3,
			position: map[string]int64{}, seen: map[int64]struct{}{}, told: map[int64]struct{}{},
		}
	}
	w.log("seed %d: %v, %+v", seed, w.profile, limits)
	for _, slot := range w.slots {
		w.boot(slot)
		w.serve()
	}
	return w
}

// boot starts a broker on a machine that has none.
func (w *world) boot(slot string) *node {
	n := w.newNode(slot)
	w.log("%s starts as %s", slot, n.serverID())
	w.nodes = append(w.nodes, n)
	slices.SortFunc(w.nodes, func(a, b *node) int { return strings.Compare(a.slot, b.slot) })
	n.startBeat()
	return n
}

func (w *world) node(slot string) *node {
	for _, n := range w.nodes {
		if n.slot == slot {
			return n
		}
	}
	return nil
}

// faulty says whether calls of the store may have failed.
func (w *world) faulty() bool { return w.profile >= shaky }

func (w *world) log(format string, args ...any) {
	w.flushNews()
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

// heard notes what a connection was sent. In the trace it goes by connection and queue: two loops
// may run in any order, and nothing is promised across queues.
func (w *world) heard(c *conn, e wire.Event) {
	w.news[c] = append(w.news[c], fmt.Sprintf("    %v <- %s", c, shown(e)))
}

func (w *world) flushNews() {
	if len(w.news) == 0 {
		return
	}
	for _, c := range w.conns {
		w.trace = append(w.trace, w.news[c]...)
	}
	clear(w.news)
}

// violate records that something does not hold; the run ends with this step.
func (w *world) violate(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
	}
}

func (w *world) stopped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken != ""
}

// hash is that of the trace.
func (w *world) hash() uint64 {
	h := fnv.New64a()
	for _, line := range w.trace {
		_, _ = h.Write([]byte(line + "\n"))
	}
	return h.Sum64()
}

// settle lets everything go on that needs no decision. Workers start one by one, in the order in which
// they were asked for, and each at a time of its own: who comes first to a client's turn, or to the end of his
// patience, must not be the scheduler's choice. Nor must it be who tells first that his time is over, of those
// who waited for each other.
func (w *world) settle() {
	for {
		synctest.Wait()
		if c := w.nextLate(); c != nil {
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

func (w *world) nextLate() *call {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.late) == 0 {
		return nil
	}
	c := slices.MinFunc(w.late, (*call).compare)
	w.late = slices.DeleteFunc(w.late, func(d *call) bool { return d == c })
	return c
}

func (w *world) nextStart() func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		if len(n.starts) > 0 && !n.paused {
			start := n.starts[0]
			n.starts = n.starts[1:]
			return start
		}
	}
	return nil
}

// turn is a loop that has something to run.
type turn struct {
	node *node
	loop int
}

func (w *world) turnsDue() (due []turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		for i, run := range n.turns {
			if run != nil && !n.paused {
				due = append(due, turn{n, i})
			}
		}
	}
	return due
}

func (w *world) run(t turn) {
	w.mu.Lock()
	run := t.node.turns[t.loop]
	t.node.turns[t.loop] = nil
	w.mu.Unlock()
	w.log("loop %s/%d", t.node.slot, t.loop)
	run()
	w.settle()
}

// bringToRest runs what a node has left, when its calls of the store fail at once.
func (w *world) bringToRest(n *node) {
	for {
		w.settle()
		again := false
		for i := range n.turns {
			w.mu.Lock()
			run := n.turns[i]
			n.turns[i] = nil
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

// end lets every goroutine of the run end.
func (w *world) end() {
	w.flushNews()
	w.mu.Lock()
	w.over = true
	calls := slices.Concat(w.calls, w.late)
	w.calls, w.late = nil, nil
	w.mu.Unlock()
	for _, c := range calls {
		for c.stage == between {
			c.goOn <- struct{}{}
			synctest.Wait()
		}
		if !c.orphan {
			c.answer <- result{nil, errDead}
		}
	}
	for _, n := range w.nodes {
		n.paused = false
	}
	for _, n := range w.nodes {
		w.bringToRest(n)
	}
	synctest.Wait()
}
