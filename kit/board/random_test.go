package board

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"switchboard/internal/wire"
)

// model is a board in one sorted slice: the oracle of TestRandom.
type model struct {
	rules   Board
	entries []Entry // ordered
	results map[string]Result
}

func (m *model) find(player string) int {
	return slices.IndexFunc(m.entries, func(e Entry) bool { return e.Player == player })
}

func (m *model) ahead(a, b int64) bool {
	if m.rules.Order == "asc" {
		return a < b
	}
	return a > b
}

// change makes a change, and returns its result.
func (m *model) change(what Mode, s Score) Result {
	if r, known := m.results[s.Player+" "+s.Operation]; known && s.Operation != "" {
		r.Repeated = true
		return r
	}
	r := Result{Board: s.Board, Player: s.Player}
	at, score := m.find(s.Player), s.Score
	if at >= 0 {
		old := m.entries[at].Score
		r.Previous = &old
		switch {
		case what == Add:
			score += old
		case what == Best && !m.ahead(score, old):
			score = old
		}
		if what == remove || score != old {
			m.entries = slices.Delete(m.entries, at, at+1)
		}
	}
	if what != remove && (r.Previous == nil || score != *r.Previous) {
		to := 0
		for to < len(m.entries) && !m.ahead(score, m.entries[to].Score) {
			to++
		}
		m.entries = slices.Insert(m.entries, to, Entry{Player: s.Player, Score: score})
		m.entries = m.entries[:min(len(m.entries), m.rules.Entries)]
	}
	for i := range m.entries {
		m.entries[i].Rank = i + 1
	}
	if at := m.find(s.Player); at >= 0 {
		r.Score, r.Rank = &score, at+1
	}
	r.Count = len(m.entries)
	if s.Operation != "" {
		m.results[s.Player+" "+s.Operation] = r
	}
	return r
}

// top returns the value of the field top.
func (m *model) top() string {
	list := []map[string]any{}
	for _, e := range m.entries[:min(10, len(m.entries))] {
		list = append(list, map[string]any{"player": e.Player, "score": e.Score})
	}
	return toJSON(map[string]any{"entries": list})
}

func toJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// normal returns JSON with its members in order.
func normal(text string) string {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	return toJSON(v)
}

// TestRandom makes random changes of small boards, and compares each result, each read and the
// field top with the model. The field has a new id if and only if the first ten have changed.
func TestRandom(t *testing.T) {
	boards := map[string]Board{
		"desc":  {Entries: 25},
		"asc":   {Order: "asc", Entries: 25},
		"small": {Entries: 10},
		"ties":  {Order: "asc", Entries: 15},
	}
	eachStore(t, Options{Boards: boards}, func(t *testing.T, f *fixture) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		for name := range boards {
			m := &model{rules: boards[name], results: map[string]Result{}}
			for range 600 {
				f.step(t, m, name, random)
				if t.Failed() {
					return
				}
			}
		}
	})
}

// step makes one random change and checks it.
func (f *fixture) step(t *testing.T, m *model, name string, random *rand.Rand) {
	// Names that JSON and Lua have to escape are among the players.
	players := []string{`a"`, `\`, "%1", "né", "x/y"}
	for i := range 30 {
		players = append(players, fmt.Sprint("p", i))
	}
	scores := int64(60)
	if name == "ties" {
		scores = 3
	}
	s := Score{Board: name, Player: players[random.IntN(len(players))], Score: random.Int64N(scores) - scores/2}
	what := []Mode{Best, Set, Set, Add, remove}[random.IntN(5)]
	if what == Add || random.IntN(4) == 0 {
		s.Operation = fmt.Sprint(random.IntN(5))
	}
	_, before := f.top(t, name)
	old := m.top()
	var got Result
	var err error
	if s.Mode = what; what == remove {
		s.Operation = ""
		got, err = f.any().Remove(t.Context(), name, s.Player, "")
	} else {
		got, err = f.any().Submit(t.Context(), s)
	}
	want := m.change(what, s)
	if err != nil || toJSON(got) != toJSON(want) {
		t.Fatalf("%+v: %s, %v; want %s", s, toJSON(got), err, toJSON(want))
	}
	top, id := f.top(t, name)
	if len(m.entries)+len(top) > 0 && normal(top) != m.top() {
		t.Fatalf("%+v: the field is %s, want %s", s, top, m.top())
	}
	if before != 0 && (id != before) != (old != m.top()) {
		t.Fatalf("%+v: the id of the field was %d and is %d; it was %s and is %s", s, before, id, old, m.top())
	}
	f.checkReads(t, m, name, s.Player, random)
}

// checkReads compares the reads with the model.
func (f *fixture) checkReads(t *testing.T, m *model, name, player string, random *rand.Rand) {
	offset, limit := random.IntN(12), 1+random.IntN(12)
	from := min(offset, len(m.entries))
	view, err := f.any().Top(t.Context(), name, "", offset, limit)
	want := View{Board: name, Count: len(m.entries), Entries: append([]Entry{}, m.entries[from:min(from+limit, len(m.entries))]...)}
	if next := from + len(want.Entries); len(want.Entries) > 0 && next < want.Count {
		want.Cursor = strconv.Itoa(next)
	}
	if err != nil || toJSON(view) != toJSON(want) {
		t.Fatalf("top %d %d: %s, %v; want %s", offset, limit, toJSON(view), err, toJSON(want))
	}
	standing, rankErr := f.any().Rank(t.Context(), name, player, "")
	view, err = f.any().Around(t.Context(), name, player, "", limit)
	at := m.find(player)
	if at < 0 {
		wantCode(t, "rank of an absent player", rankErr, wire.NotFound)
		wantCode(t, "around an absent player", err, wire.NotFound)
		return
	}
	if rankErr != nil || standing.Entry != m.entries[at] || standing.Count != len(m.entries) {
		t.Fatalf("rank of %s: %+v, %v; want %+v", player, standing, rankErr, m.entries[at])
	}
	want.Cursor = ""
	want.Entries = m.entries[max(at-limit, 0):min(at+limit+1, len(m.entries))]
	if err != nil || toJSON(view) != toJSON(want) {
		t.Fatalf("around %s: %s, %v; want %s", player, toJSON(view), err, toJSON(want))
	}
}
