package index

import (
	"context"
	"slices"
	"time"

	"github.com/tidwall/btree"
)

// places is the places that are reserved for takers, as find.lua keeps them.
type places struct {
	reserved map[string]reservation // by taker
	ends     btree.BTreeG[position] // takers by the end of their reservation, Unix ms
	numbers  map[string]int         // of reservations, by id
	making   map[string]making      // documents that are being made, by id
	byList   map[string][]string    // their ids by list, the oldest first
}

type reservation struct {
	list, id string
	end      int64 // Unix ms
}

// making is a document that is being made.
type making struct {
	places int
	list   string // for which it is made
	lists  []string
}

func newPlaces() places {
	return places{
		reserved: map[string]reservation{}, ends: *btree.NewBTreeG(before), numbers: map[string]int{},
		making: map[string]making{}, byList: map[string][]string{},
	}
}

// release ends the reservation of a taker.
func (p *places) release(taker string) {
	r, found := p.reserved[taker]
	if !found {
		return
	}
	delete(p.reserved, taker)
	p.ends.Delete(position{r.end, taker})
	if p.numbers[r.id]--; p.numbers[r.id] == 0 {
		delete(p.numbers, r.id)
		p.endMaking(r.id)
	}
}

// endMaking records that a document is not being made any more: it has a card, or no taker is left.
func (p *places) endMaking(id string) {
	for _, list := range p.making[id].lists {
		p.byList[list] = slices.DeleteFunc(p.byList[list], func(other string) bool { return other == id })
		if len(p.byList[list]) == 0 {
			delete(p.byList, list)
		}
	}
	delete(p.making, id)
}

// entered is called with a card that is stored, and the lists that it was in before.
func (p *places) entered(c *Card, old map[string]int64) {
	for list := range c.Lists {
		if _, was := old[list]; !was && p.reserved[list].id == c.ID {
			p.release(list)
		}
	}
	p.endMaking(c.ID)
}

// Find implements Index.
func (m *Memory) Find(_ context.Context, s Search) (Found, error) {
	if err := s.check(); err != nil {
		return Found{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p, now := &m.places, time.Now()
	for first, some := p.ends.Min(); some && first.score <= now.UnixMilli(); first, some = p.ends.Min() {
		p.release(first.id)
	}
	var f Found
	if r, found := p.reserved[s.Taker]; found && r.list == s.List && !slices.Contains(s.Not, r.id) { // a repeated search
		f = Found{ID: r.id, Made: p.making[r.id].list}
	} else {
		p.release(s.Taker)
		f = m.reserveLocked(&s, now)
	}
	at := now.Add(s.Due).UnixMilli()
	if due, found := m.due[f.ID]; !found || at < due {
		m.setDueLocked(f.ID, at)
	}
	return f, nil
}

// reserveLocked finds a document, and reserves a place of it.
func (m *Memory) reserveLocked(s *Search, now time.Time) Found {
	p, f := &m.places, m.findLocked(s)
	if _, counted := m.cards[f.ID].Lists[s.Taker]; !counted {
		r := reservation{s.List, f.ID, now.Add(s.Lease).UnixMilli()}
		p.reserved[s.Taker] = r
		p.ends.Set(position{r.end, s.Taker})
		p.numbers[f.ID]++
	}
	return f
}

// findLocked returns the first document with a free place, or the new one.
func (m *Memory) findLocked(s *Search) (f Found) {
	p := &m.places
	free := func(id string, places int64) bool {
		return places > int64(p.numbers[id]) && !slices.Contains(s.Not, id)
	}
	if tree := m.lists[s.List]; tree != nil {
		tree.Scan(func(at position) bool {
			n, says := m.cards[at.id].Lists[PlacesList]
			if !says {
				n = 1 // an earlier release has stored the card
			}
			if free(at.id, n) {
				f.ID = at.id
			}
			return f.ID == ""
		})
	}
	for _, id := range p.byList[s.List] {
		if f.ID == "" && free(id, int64(p.making[id].places)) {
			f = Found{ID: id, Made: p.making[id].list}
		}
	}
	if f.ID != "" {
		return f
	}
	p.making[s.New] = making{s.Places, s.List, slices.Clone(s.Lists)}
	for _, list := range s.Lists {
		p.byList[list] = append(p.byList[list], s.New)
	}
	return Found{ID: s.New, Made: s.List, First: true}
}
