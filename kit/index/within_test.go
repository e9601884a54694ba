package index

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// TestPutWithin puts cards into a bounded list, at once. As many are stored as have a place.
func TestPutWithin(t *testing.T) {
	eachIndex(t, func(t *testing.T, i Index) {
		card := func(id string) Card {
			return Card{ID: id, Version: 1, Lists: map[string]int64{"of": 7, "all": 1}, Data: []byte("d\nd")}
		}
		put(t, i, Card{ID: "old", Version: 9, Lists: map[string]int64{"of": 1}}, Card{ID: "gone", Version: 9})
		var stored atomic.Int64
		var group sync.WaitGroup
		for n := range 20 {
			group.Go(func() {
				ok, err := i.PutWithin(t.Context(), card(fmt.Sprint("c", n)), "of", 8)
				if err != nil {
					t.Error(err)
				}
				if ok {
					stored.Add(1)
				}
			})
		}
		group.Wait()
		if n := stored.Load(); n != 7 {
			t.Errorf("%d cards were stored, want 7", n)
		}
		if counts, err := i.Count(t.Context(), "of", "all"); err != nil || counts[0] != 8 || counts[1] != 7 {
			t.Errorf("the lists have %v cards, %v", counts, err)
		}
		for _, id := range []string{"old", "gone"} {
			if ok, err := i.PutWithin(t.Context(), card(id), "of", 100); ok || err != nil {
				t.Errorf("%s was stored: %t, %v", id, ok, err)
			}
		}
		put(t, i, Card{ID: "old", Version: 10})
		if ok, err := i.PutWithin(t.Context(), card("new"), "of", 8); !ok || err != nil {
			t.Errorf("a free place was not given: %v", err)
		}
		cards, err := i.Get(t.Context(), "new")
		if err != nil || cards[0].Version != 1 || cards[0].Lists["of"] != 7 || string(cards[0].Data) != "d\nd" {
			t.Errorf("the card is %+v, %v", cards, err)
		}
		put(t, i, Card{ID: "new", Version: 2, Lists: map[string]int64{"all": 1}})
		if counts, err := i.Count(t.Context(), "of", "all"); err != nil || counts[0] != 7 || counts[1] != 8 {
			t.Errorf("after the card has changed, the lists have %v cards, %v", counts, err)
		}
		if ok, err := i.PutWithin(t.Context(), Card{}, "of", 100); ok || err == nil {
			t.Error("a card without an id was stored")
		}
	})
}
