package queue

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// shelf is what a client's queue must be.
type shelf struct {
	generation int64
	held       []int64
	group      map[int64]string // of the ids that have one
	dropped    []int64          // by the cap
	ids        []int64          // all that there ever were
	cursor     int64            // of the session that reads it
}

// household is a user's devices, and what they do.
type household struct {
	*testing.T
	fixture
	rng     *rand.Rand
	shelves map[string]*shelf
}

// Devices come, read, are pushed to and acknowledge: each has what nobody has acknowledged in its
// place, is told of a gap exactly where the cap dropped something, and nothing lately stored is
// taken for lost.
func testFirstAtRandom(t *testing.T, open opener) {
	for seed := range uint64(16) {
		// So few are pushed that no group is forgotten, with a cap and without.
		opts, steps := Options{ClientCap: 5}, 30
		if seed < 2 {
			opts, steps = Options{}, 150
		}
		h := household{t, open(t, opts), rand.New(rand.NewPCG(seed, 0)), map[string]*shelf{}}
		for _, name := range []string{"laptop", "phone", "tablet"} {
			h.shelves[name] = &shelf{group: map[int64]string{}}
			h.bind(name)
			h.own(t, "alice", name)
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

func (h household) step(step int) string {
	names := slices.Sorted(maps.Keys(h.shelves))
	h.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	name := names[0]
	s := h.shelves[name]
	switch n := h.rng.IntN(10); {
	case n < 3:
		group := fmt.Sprint("g", step)
		some := names[:2+h.rng.IntN(2)]
		for client, id := range sendFirst(h.T, h.fixture, group, some...) {
			h.add(client, id)
			h.shelves[client].group[id] = group
		}
		return "a message of which the first acknowledgement counts"
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

func (h household) bind(name string) {
	h.Helper()
	b := must(h.Bind(h.Context(), Claim{Client: name, User: "alice", Server: "b1"}))(h.T)
	if b.WithdrawalDue {
		must(h.Ack(h.Context(), name, b.Generation, b.Acked))(h.T)
	}
	s := h.shelves[name]
	s.generation, s.cursor = b.Generation, b.Acked
}

func (h household) add(name string, id int64) {
	s := h.shelves[name]
	s.ids = append(s.ids, id)
	if s.held = append(s.held, id); len(s.held) > h.opts.ClientCap {
		s.dropped = append(s.dropped, s.held[0])
		s.held = s.held[1:]
	}
}

func (h household) ack(name string, id int64) {
	s := h.shelves[name]
	must(h.Ack(h.Context(), name, s.generation, id))(h.T)
	for len(s.held) > 0 && s.held[0] <= id {
		group := s.group[s.held[0]]
		s.held = s.held[1:]
		if group == "" {
			continue
		}
		for _, other := range h.shelves {
			other.held = slices.DeleteFunc(other.held, func(id int64) bool { return other.group[id] == group })
		}
	}
}

// read goes on from where the session is.
func (h household) read(name string) string {
	s := h.shelves[name]
	p := must(h.Window(h.Context(), name, s.generation, s.cursor, 2))(h.T)
	missing := slices.ContainsFunc(s.dropped, func(id int64) bool { return id > s.cursor })
	if p.Complete == missing {
		h.Errorf("%s at %d is told of a gap: %v; %v fell to the cap", name, s.cursor, !p.Complete, s.dropped)
	}
	if missing && !slices.ContainsFunc(s.dropped, func(id int64) bool { return id > s.cursor && id <= p.Floor }) {
		h.Errorf("%s at %d is told of a gap to %d; %v fell to the cap", name, s.cursor, p.Floor, s.dropped)
	}
	s.cursor = max(s.cursor, p.Floor)
	for _, m := range p.Messages {
		s.cursor = m.ID
	}
	return " reads"
}

func (h household) check() {
	for name, s := range h.shelves {
		p := must(h.Window(h.Context(), name, s.generation, 0, 100))(h.T)
		if got := idsOf(p.Messages); !slices.Equal(got, s.held) && len(got)+len(s.held) > 0 {
			h.Errorf("%s has %v, want %v", name, got, s.held)
		}
		if len(s.ids) == 0 {
			continue
		}
		id := s.ids[len(s.ids)-1-h.rng.IntN(min(len(s.ids), h.opts.ClientCap))]
		if m := must(h.ConfirmClient(h.Context(), name, id))(h.T); m != nil {
			h.Errorf("%d of %s is taken for lost: %s", id, name, m.Data)
		}
	}
}
