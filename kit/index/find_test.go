package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/internal/await"
	"switchboard/internal/redispipe"
)

// searcher makes searches for takers of documents with four places.
type searcher struct {
	testing.TB
	Index
	new int
}

// find returns the id of the document in which a taker has a place, with + if the search has
// brought it up, and with ? if it is being made.
func (s *searcher) find(taker string, change func(*Search)) string {
	s.Helper()
	s.new++
	q := Search{
		List: "wait", Taker: "user/" + taker, New: "new" + strconv.Itoa(s.new), Places: 4, Lists: []string{"wait"},
		Due: time.Minute, Lease: time.Minute,
	}
	if change != nil {
		change(&q)
	}
	f, err := s.Find(s.Context(), q)
	if err != nil {
		s.Fatal(err)
	}
	switch {
	case f.First:
		return f.ID + "+"
	case f.Made != "":
		return f.ID + "?"
	}
	return f.ID
}

// want checks in which documents takers find places.
func (s *searcher) want(takers []string, want ...string) {
	s.Helper()
	var got []string
	for _, taker := range takers {
		got = append(got, s.find(taker, nil))
	}
	if !slices.Equal(got, want) {
		s.Fatalf("%v have places in %v, want %v", takers, got, want)
	}
}

// seats returns the card of a document with free places and takers.
func seats(id string, version, created, free int64, takers ...string) Card {
	c := Card{ID: id, Version: version, Lists: map[string]int64{"all": created}}
	if free > 0 {
		c.Lists["wait"], c.Lists[PlacesList] = created, free
	}
	for _, taker := range takers {
		c.Lists["user/"+taker] = created
	}
	return c
}

// TestFind checks in which documents takers find places: the oldest with a free place, then those
// that are being made, then a new one.
func TestFind(t *testing.T) {
	eachIndex(t, func(t *testing.T, i Index) {
		s := &searcher{TB: t, Index: i}
		put(t, i, seats("b", 1, 20, 2), seats("a", 1, 10, 1), seats("full", 1, 5, 0))
		s.want([]string{"1", "2", "3", "4"}, "a", "b", "b", "new4+")
		s.want([]string{"5", "6", "7", "8"}, "new4?", "new4?", "new4?", "new8+")
		s.want([]string{"2", "5", "8"}, "b", "new4?", "new8?") // repeated searches

		// The card of a document counts the takers that it shows, and no others.
		put(t, i, seats("b", 2, 20, 1, "2"))
		s.want([]string{"9"}, "new8?")
		put(t, i, seats("b", 3, 20, 1, "3")) // 2 has left again
		s.want([]string{"10"}, "b")
		put(t, i, seats("new4", 1, 30, 3, "4"))
		s.want([]string{"11", "5"}, "new8?", "new4")
		put(t, i, seats("new4", 2, 30, 0, "4", "5", "6", "7"))
		s.want([]string{"12", "13"}, "new8?", "new17+")

		// A taker that a document already has needs no other place there.
		put(t, i, seats("c", 1, 1, 1, "14"))
		s.want([]string{"14", "15"}, "c", "c")
	})
}

// TestFindAnother checks that a taker whose document has refused it finds another one, and that its
// place is free for others then.
func TestFindAnother(t *testing.T) {
	eachIndex(t, func(t *testing.T, i Index) {
		s := &searcher{TB: t, Index: i}
		put(t, i, seats("a", 1, 10, 1), seats("b", 1, 20, 1))
		not := func(ids ...string) func(*Search) { return func(q *Search) { q.Not = ids } }
		s.want([]string{"amy"}, "a")
		if got := s.find("amy", not("a")); got != "b" {
			t.Errorf("amy has a place in %s, want b", got)
		}
		s.want([]string{"bob"}, "a")
		if got := s.find("amy", not("a", "b")); got != "new4+" {
			t.Errorf("amy has a place in %s, want a new document", got)
		}
		// No other taker makes a document whose only taker has given up.
		if got := s.find("amy", not("a", "b", "new4")); got != "new5+" {
			t.Errorf("amy has a place in %s, want a new document", got)
		}
		s.want([]string{"cat", "dan"}, "b", "new5?")
	})
}

// TestFindLists checks that a new document is found through each of its lists, and that each taker
// learns for which list it is made.
func TestFindLists(t *testing.T) {
	eachIndex(t, func(t *testing.T, i Index) {
		s := &searcher{TB: t, Index: i}
		east := func(q *Search) { q.List, q.Lists = "wait/east", []string{"wait", "wait/east"} }
		west := func(q *Search) { q.List, q.Lists = "wait/west", []string{"wait", "wait/west"} }
		for _, step := range []struct {
			taker  string
			change func(*Search)
			want   string
		}{{"1", east, "new1+"}, {"2", west, "new2+"}, {"3", nil, "new1?"}, {"4", east, "new1?"}, {"5", east, "new1?"}, {"6", nil, "new2?"}, {"7", east, "new7+"}} {
			if got := s.find(step.taker, step.change); got != step.want {
				t.Errorf("%s has a place in %s, want %s", step.taker, got, step.want)
			}
		}
		f, err := i.Find(t.Context(), Search{
			List: "wait", Taker: "user/8", New: "x", Places: 4, Lists: []string{"wait"}, Due: time.Minute, Lease: time.Minute,
		})
		if err != nil || f != (Found{ID: "new2", Made: "wait/west"}) {
			t.Errorf("8 has a place in %+v, %v", f, err)
		}
	})
}

// TestFindLease checks that the place of a taker that does not come is free after the lease, and
// that a document that no taker has made is forgotten then.
func TestFindLease(t *testing.T) {
	eachIndex(t, func(t *testing.T, i Index) {
		s := &searcher{TB: t, Index: i}
		soon := func(q *Search) { q.Lease = time.Millisecond }
		n := 0
		next := func(change func(*Search)) string { n++; return s.find(strconv.Itoa(n), change) }
		put(t, i, seats("a", 1, 10, 1))
		if got := next(soon); got != "a" {
			t.Fatalf("the first taker has a place in %s", got)
		}
		await.True(t, "the place is free", func() bool { return next(soon) == "a" })
		put(t, i, seats("a", 2, 10, 0))
		await.True(t, "a document is brought up", func() bool { return strings.HasSuffix(next(soon), "+") })
		await.True(t, "it is forgotten, and another one is brought up", func() bool { return strings.HasSuffix(next(soon), "+") })
	})
}

// TestFindSchedules checks that a document that was found is due.
func TestFindSchedules(t *testing.T) {
	eachIndex(t, func(t *testing.T, i Index) {
		s := &searcher{TB: t, Index: i}
		put(t, i, seats("a", 1, 10, 1))
		s.find("amy", func(q *Search) { q.Due = 0 })
		tasks, err := i.Take(t.Context(), 10, time.Minute)
		if err != nil || len(tasks) != 1 || tasks[0].ID != "a" {
			t.Errorf("due are %v, %v", tasks, err)
		}
	})
}

// TestFindRace lets many takers search at once: no place is given twice, and no document is brought
// up that is not needed.
func TestFindRace(t *testing.T) {
	eachIndex(t, func(t *testing.T, i Index) {
		put(t, i, seats("a", 1, 10, 3), seats("b", 1, 20, 1))
		var mu sync.Mutex // guards got
		got := map[string]int{}
		var group sync.WaitGroup
		for n := range 104 {
			group.Go(func() {
				f, err := i.Find(t.Context(), Search{
					List: "wait", Taker: "user/" + strconv.Itoa(n), New: fmt.Sprint("new", n), Places: 4, Lists: []string{"wait"},
					Due: time.Minute, Lease: time.Minute,
				})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				got[f.ID]++
			})
		}
		group.Wait()
		if got["a"] != 3 || got["b"] != 1 || len(got) != 27 {
			t.Errorf("the places are %v", got)
		}
		for id, n := range got {
			if n > 4 {
				t.Errorf("%s has %d takers", id, n)
			}
		}
	})
}

// TestFindRandom makes random searches, and stores random cards, in memory and in Redis, and checks
// that both find the same.
func TestFindRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	memory := NewMemory()
	prefix := fmt.Sprintf("t%d:", prefixes.Add(1))
	shared := NewRedis(redispipe.New(single.Client(t), redispipe.Options{Timeout: time.Second}), prefix, "things")
	lists := []string{"wait", "wait/east", "wait/west"}
	var ids []string
	taker := func() string { return strconv.Itoa(random.IntN(12)) }
	for step := range 1500 {
		if n := len(ids); n > 0 && random.IntN(3) == 0 {
			at := random.IntN(n)
			var takers []string
			for range random.IntN(4) {
				takers = append(takers, taker())
			}
			c := seats(ids[at], int64(step), int64(at), int64(random.IntN(4)), takers...)
			if len(c.Lists) > 1 && random.IntN(2) == 0 && c.Lists[PlacesList] > 0 {
				c.Lists[lists[1+random.IntN(2)]] = int64(at)
			}
			if random.IntN(8) == 0 {
				c.Lists = nil
			}
			put(t, memory, c)
			put(t, shared, c)
			continue
		}
		s := Search{
			List: lists[random.IntN(3)], Taker: "user/" + taker(), New: fmt.Sprint("new", step), Places: 1 + random.IntN(3), Lists: lists[:1],
			Due: time.Minute, Lease: time.Minute,
		}
		if s.List != "wait" {
			s.Lists = []string{"wait", s.List}
		}
		for range random.IntN(3) {
			if len(ids) > 0 {
				s.Not = append(s.Not, ids[random.IntN(len(ids))])
			}
		}
		want, err := memory.Find(t.Context(), s)
		got, otherErr := shared.Find(t.Context(), s)
		if err != nil || otherErr != nil || got != want {
			t.Fatalf("step %d: %+v: Redis finds %+v, %v, memory %+v, %v", step, s, got, otherErr, want, err)
		}
		if want.First {
			ids = append(ids, want.ID)
		}
	}
}

// TestFindChecks checks that a search that could not be stored is refused.
func TestFindChecks(t *testing.T) {
	good := Search{List: "wait", Taker: "user/a", New: "n", Places: 1, Lists: []string{"wait"}}
	for name, change := range map[string]func(*Search){
		"a list":       func(q *Search) { q.List = "a b" },
		"a taker":      func(q *Search) { q.Taker = "" },
		"another list": func(q *Search) { q.Lists = []string{"a\nb"} },
		"an id":        func(q *Search) { q.New = "a b" },
		"no id":        func(q *Search) { q.New = "" },
		"no place":     func(q *Search) { q.Places = 0 },
	} {
		q := good
		if change(&q); q.check() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
