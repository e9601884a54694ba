package queue

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// queueModel is the expected state of a client's queue.
type queueModel struct {
	generation int64
	held       []int64
	group      map[int64]string // by id, of messages with a group
	dropped    []int64          // by the cap
	ids        []int64          // of all messages ever
	cursor     int64            // of the session that reads it
}

// model is the expected state of the queues of a user's clients.
type model struct {
	*testing.T
	fixture
	rng    *rand.Rand
	queues map[string]*queueModel
}

// testGroupsAtRandom makes random connects, reads, pushes and acknowledgements, and compares the
// queues with a model: a page is incomplete exactly if the cap dropped messages, and no recent
// message is reported lost.
func testGroupsAtRandom(t *testing.T, open opener) {
	for seed := range uint64(16) {
		// With more pushes the cap on groups would remove some.
		opts, steps := Options{ClientCap: 5}, 30
		if seed < 2 {
			opts, steps = Options{}, 150
		}
		m := model{t, open(t, opts), rand.New(rand.NewPCG(seed, 0)), map[string]*queueModel{}}
		for _, name := range []string{"laptop", "phone", "tablet"} {
			m.queues[name] = &queueModel{group: map[int64]string{}}
			m.bind(name)
			m.addClients(t, "alice", name)
		}
		for step := range steps {
			did := m.step(step)
			m.check()
			if t.Failed() {
				t.Fatalf("seed %d, step %d: %s", seed, step, did)
			}
		}
	}
}

func (m model) step(step int) string {
	names := slices.Sorted(maps.Keys(m.queues))
	m.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	name := names[0]
	q := m.queues[name]
	switch n := m.rng.IntN(10); {
	case n < 3:
		group := fmt.Sprint("g", step)
		some := names[:2+m.rng.IntN(2)]
		for client, id := range sendGroup(m.T, m.fixture, group, some...) {
			m.add(client, id)
			m.queues[client].group[id] = group
		}
		return "a message with a group"
	case n < 5:
		m.add(name, send(m.T, m, name, 1)[0])
		return "a message to " + name
	case n < 6:
		m.bind(name)
		return name + " connects"
	case n < 8 && len(q.held) > 0:
		id := q.held[m.rng.IntN(len(q.held))]
		m.ack(name, id)
		return fmt.Sprint(name, " acknowledges ", id)
	default:
		return name + m.read(name)
	}
}

func (m model) bind(name string) {
	m.Helper()
	b := must(m.Bind(m.Context(), Claim{Client: name, User: "alice", Server: "b1"}))(m.T)
	if b.WithdrawalDue {
		must(m.Ack(m.Context(), name, b.Generation, b.Acked))(m.T)
	}
	q := m.queues[name]
	q.generation, q.cursor = b.Generation, b.Acked
}

func (m model) add(name string, id int64) {
	q := m.queues[name]
	q.ids = append(q.ids, id)
	if q.held = append(q.held, id); len(q.held) > m.opts.ClientCap {
		q.dropped = append(q.dropped, q.held[0])
		q.held = q.held[1:]
	}
}

func (m model) ack(name string, id int64) {
	q := m.queues[name]
	must(m.Ack(m.Context(), name, q.generation, id))(m.T)
	for len(q.held) > 0 && q.held[0] <= id {
		group := q.group[q.held[0]]
		q.held = q.held[1:]
		if group == "" {
			continue
		}
		for _, other := range m.queues {
			other.held = slices.DeleteFunc(other.held, func(id int64) bool { return other.group[id] == group })
		}
	}
}

// read reads from the cursor of the session.
func (m model) read(name string) string {
	q := m.queues[name]
	p := must(m.Window(m.Context(), name, q.generation, q.cursor, 2))(m.T)
	missing := slices.ContainsFunc(q.dropped, func(id int64) bool { return id > q.cursor })
	if p.Complete == missing {
		m.Errorf("%s at %d has a gap: %v; the cap dropped %v", name, q.cursor, !p.Complete, q.dropped)
	}
	if missing && !slices.ContainsFunc(q.dropped, func(id int64) bool { return id > q.cursor && id <= p.Floor }) {
		m.Errorf("%s at %d has a gap to %d; the cap dropped %v", name, q.cursor, p.Floor, q.dropped)
	}
	q.cursor = max(q.cursor, p.Floor)
	for _, message := range p.Messages {
		q.cursor = message.ID
	}
	return " reads"
}

func (m model) check() {
	for name, q := range m.queues {
		p := must(m.Window(m.Context(), name, q.generation, 0, 100))(m.T)
		if got := idsOf(p.Messages); !slices.Equal(got, q.held) && len(got)+len(q.held) > 0 {
			m.Errorf("%s has %v, want %v", name, got, q.held)
		}
		if len(q.ids) == 0 {
			continue
		}
		id := q.ids[len(q.ids)-1-m.rng.IntN(min(len(q.ids), m.opts.ClientCap))]
		if marker := must(m.ConfirmClient(m.Context(), name, id))(m.T); marker != nil {
			m.Errorf("%d of %s is reported lost: %s", id, name, marker.Data)
		}
	}
}
