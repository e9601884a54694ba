package index

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"switchboard/internal/meter"
)

var _ Index = (*Memory)(nil)

// Memory is an [Index] in this process.
type Memory struct {
	mu      sync.Mutex // guards the fields below
	cards   map[string]Card
	lists   map[string]*btree.BTreeG[position]
	due     map[string]int64 // Unix ms
	order   btree.BTreeG[position]
	removed map[string]tombstone
	places  places
}

type tombstone struct {
	version int64
	at      time.Time
}

func before(a, b position) bool {
	return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.id, b.id)) < 0
}

// NewMemory returns an empty index.
func NewMemory() *Memory {
	return &Memory{
		cards: map[string]Card{}, lists: map[string]*btree.BTreeG[position]{},
		due: map[string]int64{}, order: *btree.NewBTreeG(before), removed: map[string]tombstone{}, places: newPlaces(),
	}
}

// Put implements Index.
func (m *Memory) Put(_ context.Context, cards ...Card) error {
	for i := range cards {
		if err := cards[i].check(); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range cards {
		m.putLocked(c)
	}
	return nil
}

func (m *Memory) putLocked(c Card) {
	old := m.cards[c.ID]
	if c.Version < max(old.Version, m.removed[c.ID].version) {
		return
	}
	for list, score := range old.Lists {
		if tree := m.lists[list]; tree != nil {
			if tree.Delete(position{score, c.ID}); tree.Len() == 0 {
				delete(m.lists, list)
			}
		}
	}
	delete(m.removed, c.ID)
	if len(c.Lists) == 0 {
		delete(m.cards, c.ID)
		m.removed[c.ID] = tombstone{c.Version, time.Now()}
		return
	}
	m.places.entered(&c, old.Lists)
	c.Lists, c.Data = maps.Clone(c.Lists), slices.Clone(c.Data)
	m.cards[c.ID] = c
	for list, score := range c.Lists {
		if m.lists[list] == nil {
			m.lists[list] = btree.NewBTreeG(before)
		}
		m.lists[list].Set(position{score, c.ID})
	}
}

// Get implements Index.
func (m *Memory) Get(ctx context.Context, ids ...string) ([]Card, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	cards := make([]Card, len(ids))
	for i, id := range ids {
		cards[i] = m.cards[id]
		cards[i].Lists = maps.Clone(cards[i].Lists)
		cards[i].count(ctx)
	}
	return cards, nil
}

// Versions implements Index.
func (m *Memory) Versions(_ context.Context, ids ...string) ([]int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	versions := make([]int64, len(ids))
	for i, id := range ids {
		versions[i] = m.cards[id].Version
	}
	return versions, nil
}

// List implements Index.
func (m *Memory) List(ctx context.Context, q Query) (page Page, err error) {
	q = q.withDefaults()
	after, err := q.from()
	if err != nil {
		return page, err
	}
	from := position{q.Min, ""}
	if q.Descending {
		from = position{q.Max, "\xff"}
	}
	if after != nil {
		from = *after
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	tree := m.lists[q.List]
	if tree == nil {
		return page, nil
	}
	var last position
	bytes := 0
	visit := func(p position) bool {
		if after != nil && p == from {
			return true
		}
		if p.score < q.Min || p.score > q.Max {
			return false
		}
		c := m.cards[p.id]
		bytes += len(c.Data) + cardBytes
		if len(page.Cards) == q.Limit || q.Bytes > 0 && len(page.Cards) > 0 && bytes > q.Bytes {
			page.Next = last.cursor()
			return false
		}
		last = p
		c.Lists = map[string]int64{q.List: p.score}
		page.Cards = append(page.Cards, c)
		c.count(ctx)
		return true
	}
	if q.Descending {
		tree.Descend(from, visit)
	} else {
		tree.Ascend(from, visit)
	}
	return page, nil
}

// count counts a card in the Meter of ctx, like the reply of Redis.
func (c *Card) count(ctx context.Context) { meter.Add(ctx, len(c.ID)+len(c.Data)+cardBytes) }

// cardBytes is about how many bytes Redis sends for a card besides its id and its data.
const cardBytes = 64

// Count implements Index.
func (m *Memory) Count(_ context.Context, lists ...string) ([]int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := make([]int, len(lists))
	for i, list := range lists {
		if tree := m.lists[list]; tree != nil {
			counts[i] = tree.Len()
		}
	}
	return counts, nil
}

// Schedule implements Index.
func (m *Memory) Schedule(_ context.Context, in time.Duration, ids ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := time.Now().Add(in).UnixMilli()
	for _, id := range ids {
		if due, found := m.due[id]; !found || at < due {
			m.setDueLocked(id, at)
		}
	}
	return nil
}

func (m *Memory) setDueLocked(id string, at int64) {
	if due, found := m.due[id]; found {
		m.order.Delete(position{due, id})
	}
	m.due[id] = at
	m.order.Set(position{at, id})
}

// Take implements Index.
func (m *Memory) Take(_ context.Context, n int, lease time.Duration) ([]Task, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	end := now.Add(lease).UnixMilli()
	var tasks []Task
	m.order.Scan(func(p position) bool {
		if p.score > now.UnixMilli() || len(tasks) == n {
			return false
		}
		tasks = append(tasks, Task{p.id, end})
		return true
	})
	for _, t := range tasks {
		m.setDueLocked(t.ID, end)
	}
	return tasks, nil
}

// Done implements Index.
func (m *Memory) Done(_ context.Context, next map[Task]time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for t, in := range next {
		due, found := m.due[t.ID]
		switch {
		case !found || due != t.lease:
		case in > 0:
			m.setDueLocked(t.ID, time.Now().Add(in).UnixMilli())
		default:
			delete(m.due, t.ID)
			m.order.Delete(position{due, t.ID})
		}
	}
	return nil
}

// Sweep implements Index.
func (m *Memory) Sweep(_ context.Context, n int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, t := range m.removed {
		if n == 0 {
			break
		}
		if time.Since(t.at) > TombstoneAge {
			delete(m.removed, id)
			n--
		}
	}
	return nil
}
