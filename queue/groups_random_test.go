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
		// Few enough pushes that no group is removed because of its cap.
		opts, steps := Options{ClientCap: 5}, 30
		if seed < 2 {
			opts, steps = Options{}, 150
		}
		h := model{t, open(t, opts), rand.New(rand.NewPCG(seed, 0)), map[string]*queueModel{}}
		for _, name := range []string{"laptop", "phone", "tablet"} {
			h.queues[name] = &queueModel{group: map[int64]string{}}
			h.bind(name)
			h.addClients(t, "alice", name)
		}
		for step := range steps {
			did := h.step(step)
			h.check()
			if t.Failed() {
				t.Fatalf("seed %d, step %d: %s", seed, step, did)
			}
		}
	}
}

func (h model) step(step int) string {
	names := slices.Sorted(maps.Keys(h.queues))
	h.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	name := names[0]
	s := h.queues[name]
	switch n := h.rng.IntN(10); {
	case n < 3:
		group := fmt.Sprint("g", step)
		some := names[:2+h.rng.IntN(2)]
		for client, id := range sendGroup(h.T, h.fixture, group, some...) {
			h.add(client, id)
			h.queues[client].group[id] = group
		}
		return "a message with a group"
	case n < 5:
		h.add(name, send(h.T, h, name, 1)[0])
		return "a message to " + name
	case n < 6:
		h.bind(name)
		return name + " connects"
	case n < 8 && len(s.held) > 0:
		id := s.held[h.rng.IntN(len(s.held))]
		h.ack(name, id)
		return fmt.Sprint(name, " acknowledges ", id)
	default:
		return name + h.read(name)
	}
}

func (h model) bind(name string) {
	h.Helper()
	b := must(h.Bind(h.Context(), Claim{Client: name, User: "alice", Server: "b1"}))(h.T)
	if b.WithdrawalDue {
		must(h.Ack(h.Context(), name, b.Generation, b.Acked))(h.T)
	}
	s := h.queues[name]
	s.generation, s.cursor = b.Generation, b.Acked
}

func (h model) add(name string, id int64) {
	s := h.queues[name]
	s.ids = append(s.ids, id)
	if s.held = append(s.held, id); len(s.held) > h.opts.ClientCap {
		s.dropped = append(s.dropped, s.held[0])
		s.held = s.held[1:]
	}
}

func (h model) ack(name string, id int64) {
	s := h.queues[name]
	must(h.Ack(h.Context(), name, s.generation, id))(h.T)
	for len(s.held) > 0 && s.held[0] <= id {
		group := s.group[s.held[0]]
		s.held = s.held[1:]
		if group == "" {
			continue
		}
		for _, other := range h.queues {
			other.held = slices.DeleteFunc(other.held, func(id int64) bool { return other.group[id] == group })
		}
	}
}

// read reads from the cursor of the session.
func (h model) read(name string) string {
	s := h.queues[name]
	p := must(h.Window(h.Context(), name, s.generation, s.cursor, 2))(h.T)
	missing := slices.ContainsFunc(s.dropped, func(id int64) bool { return id > s.cursor })
	if p.Complete == missing {
		h.Errorf("%s at %d has a gap: %v; the cap dropped %v", name, s.cursor, !p.Complete, s.dropped)
	}
	if missing && !slices.ContainsFunc(s.dropped, func(id int64) bool { return id > s.cursor && id <= p.Floor }) {
		h.Errorf("%s at %d has a gap to %d; the cap dropped %v", name, s.cursor, p.Floor, s.dropped)
	}
	s.cursor = max(s.cursor, p.Floor)
	for _, m := range p.Messages {
		s.cursor = m.ID
	}
	return " reads"
}

func (h model) check() {
	for name, s := range h.queues {
		p := must(h.Window(h.Context(), name, s.generation, 0, 100))(h.T)
		if got := idsOf(p.Messages); !slices.Equal(got, s.held) && len(got)+len(s.held) > 0 {
			h.Errorf("%s has %v, want %v", name, got, s.held)
		}
		if len(s.ids) == 0 {
			continue
		}
		id := s.ids[len(s.ids)-1-h.rng.IntN(min(len(s.ids), h.opts.ClientCap))]
		if m := must(h.ConfirmClient(h.Context(), name, id))(h.T); m != nil {
			h.Errorf("%d of %s is reported lost: %s", id, name, m.Data)
		}
	}
}
