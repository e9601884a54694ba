package index

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"switchboard/internal/redispipe"
)

// TestPagesByBytes checks that a page ends at its bytes, and has at least one card.
func TestPagesByBytes(t *testing.T) {
	eachIndex(t, func(t *testing.T, i Index) {
		for n := range 9 {
			put(t, i, Card{ID: fmt.Sprint(n), Version: 1, Lists: map[string]int64{"all": 1}, Data: []byte(strings.Repeat("x", 1000))})
		}
		for bytes, want := range map[int]int{1: 1, 2500: 2, 5000: 4, 1 << 20: 9, 0: 9} {
			q, seen := Query{List: "all", Bytes: bytes}, 0
			for {
				page, err := i.List(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				if seen += len(page.Cards); len(page.Cards) != min(want, 9-seen+len(page.Cards)) {
					t.Errorf("%d bytes: a page of %d cards, want %d", bytes, len(page.Cards), want)
				}
				if q.Cursor = page.Next; q.Cursor == "" {
					break
				}
			}
			if seen != 9 {
				t.Errorf("%d bytes: %d cards", bytes, seen)
			}
		}
	})
}

// TestPagesAtRandom compares pages of lists with few scores over Redis with those in memory. Cards
// change between the pages, also those at which a page has ended.
func TestPagesAtRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	memory, shared := NewMemory(), NewRedis(redispipe.New(single.Client(t), redispipe.Options{}), fmt.Sprintf("t%d:", prefixes.Add(1)), "things")
	names := []string{"a", "B", "b", "_", "room:1", "room:10", "room:2", "z", "Z", "zz"}
	for version := range int64(200) {
		c := Card{ID: names[r.IntN(len(names))], Version: version + 1}
		if r.IntN(4) > 0 {
			c.Lists, c.Data = map[string]int64{"all": r.Int64N(3)}, []byte(strings.Repeat("x", r.IntN(60)))
		}
		put(t, memory, c)
		put(t, shared, c)
		q := Query{List: "all", Descending: r.IntN(2) == 0, Limit: 1 + r.IntN(4), Min: r.Int64N(2)}
		q.Max = r.Int64N(4)
		if r.IntN(2) == 0 {
			q.Cursor = position{r.Int64N(4), names[r.IntN(len(names))]}.cursor()
		}
		a, errA := memory.List(t.Context(), q)
		b, errB := shared.List(t.Context(), q)
		for i := range a.Cards {
			a.Cards[i].Version, a.Cards[i].Data = 0, nil
		}
		for i := range b.Cards {
			b.Cards[i].Version, b.Cards[i].Data = 0, nil
		}
		if errA != nil || errB != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("%+v:\nmemory %+v, %v\nredis  %+v, %v", q, a, errA, b, errB)
		}
	}
}
