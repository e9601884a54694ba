package board

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"switchboard/internal/meter"
	"switchboard/internal/state"
	"switchboard/queue"
)

var _ Store = (*Memory)(nil)

// Memory is a [Store] next to a [queue.Memory]. It does what change.lua and read.lua do.
type Memory struct {
	mu         sync.Mutex // guards the fields below
	boards     map[string]*ranking
	operations map[string]operation
	sweepAt    int64 // Unix ms
}

// operation is the result of a change with an operation id.
type operation struct {
	reply string
	until int64 // Unix ms
}

// ranking is one season of a board.
type ranking struct {
	order   *btree.BTreeG[place]
	players map[string]place
	arrival int64  // the next one
	top     []byte // the field top
	forget  int64  // Unix ms, 0 for never
}

// place is the place of a player. Places ascend by sorted, which is the score or its negative, then
// by arrival.
type place struct {
	sorted, arrival int64
	player          string
}

func before(a, b place) bool {
	return cmp.Or(cmp.Compare(a.sorted, b.sorted), cmp.Compare(a.arrival, b.arrival)) < 0
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{boards: map[string]*ranking{}, operations: map[string]operation{}}
}

func newRanking(forget int64) *ranking {
	return &ranking{
		order:   btree.NewBTreeGOptions(before, btree.Options{NoLocks: true}),
		players: map[string]place{}, forget: forget,
	}
}

// hasEnded reports whether the ranking is forgotten at now, Unix ms.
func (r *ranking) hasEnded(now int64) bool { return r.forget > 0 && now >= r.forget }

// rank returns how many players are before a place. Each step of the search is O(log n).
func (r *ranking) rank(p place) int {
	return sort.Search(r.order.Len(), func(i int) bool {
		other, _ := r.order.GetAt(i)
		return !before(other, p)
	})
}

func (m *Memory) change(c change) *queue.ScriptCall {
	return &queue.ScriptCall{Script: changeScript, Memory: func(u *state.Update, now int64) (string, func()) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sweepLocked(now)
		reply, write := m.planLocked(c, u, now)
		return reply, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			if write != nil {
				write()
			}
		}
	}}
}

// planLocked changes u to the update of the field top, and returns the reply of change.lua. write
// makes the change.
func (m *Memory) planLocked(c change, u *state.Update, now int64) (reply string, write func()) {
	top := u.Ops[0]
	u.Ops = nil
	id := c.board + " " + c.player + " " + c.operation
	if known, found := m.operations[id]; found && c.operation != "" && now < known.until {
		return known.reply + " again", nil
	}
	current := c.season.start <= now && now < c.season.end
	if !current && !c.anySeason {
		u.If = []state.Condition{{Field: conditionExpired, ID: 1}}
		return "", nil
	}
	key := c.board + " " + c.season.id
	r := m.boards[key]
	if r == nil || r.hasEnded(now) {
		r = newRanking(c.season.forget)
	}
	s, ok := r.plan(&c)
	if !ok {
		u.If = []state.Condition{{Field: conditionRange, ID: 1}}
		return "", nil
	}
	value := r.top
	if current && (s.changed || r.order.Len() > 0) {
		if value = r.topAfter(&c, s); !bytes.Equal(value, r.top) {
			top.Value = value
			if c.season.id != "" {
				top.TTL = time.Duration(c.season.end-now) * time.Millisecond
			}
			u.Ops = []state.Op{top}
		}
	}
	reply = s.reply(c.sign) + " " + c.season.word()
	return reply, func() {
		r.apply(c.player, s)
		r.top = value
		if c.season.id == "" {
			r.forget = c.season.forget
		}
		if r.order.Len() > 0 || r.top != nil {
			m.boards[key] = r
		}
		if c.operation != "" {
			m.operations[id] = operation{reply, now + c.remember.Milliseconds()}
		}
	}
}

// step is a planned change.
type step struct {
	old, new      place
	had, has      bool // whether old and new are places on the board
	changed       bool
	rank          int // from 1, 0 for none
	fallen, count int // players that fall out, and players after the change
}

// plan returns what a change does. ok is false if the score is out of range.
func (r *ranking) plan(c *change) (s step, ok bool) {
	n := r.order.Len()
	s.old, s.had = r.players[c.player]
	score, old := c.score, s.old.sorted*c.sign
	switch {
	case c.what == remove:
		s.changed, s.count = s.had, n
		if s.had {
			s.count--
		}
		return s, true
	case c.what == Add:
		if score += old; score > state.MaxNumber || score < -state.MaxNumber {
			return s, false
		}
	case c.what == Best && s.had && s.old.sorted <= score*c.sign:
		score = old
	}
	s.new, s.has, s.count = place{score * c.sign, r.arrival, c.player}, true, n
	switch s.changed = !s.had || score != old; {
	case !s.changed:
		s.new = s.old
	case !s.had && n >= c.entries:
		if worst, _ := r.order.Max(); worst.sorted <= s.new.sorted {
			return step{count: n}, true
		}
		s.fallen = min(n+1-c.entries, 100)
	}
	if !s.had {
		s.count += 1 - s.fallen
	}
	s.rank = 1 + r.rank(s.new)
	if s.changed && s.had && before(s.old, s.new) {
		s.rank--
	}
	return s, true
}

// apply makes a planned change.
func (r *ranking) apply(player string, s step) {
	if !s.changed {
		return
	}
	if s.had {
		r.order.Delete(s.old)
		delete(r.players, player)
	}
	if s.has {
		r.order.Set(s.new)
		r.players[player] = s.new
		r.arrival++
	}
	for range s.fallen {
		last, _ := r.order.PopMax()
		delete(r.players, last.player)
	}
}

var escapeName = strings.NewReplacer(`"`, `\"`, `\`, `\\`)

// topAfter returns the value of the field top after a change.
func (r *ranking) topAfter(c *change, s step) []byte {
	if tenth, found := r.order.GetAt(topSize - 1); found && r.top != nil {
		leaves, enters := s.had && !before(tenth, s.old), s.has && before(s.new, tenth)
		if !s.changed || !leaves && !enters {
			return r.top
		}
	}
	list := make([]place, 0, topSize+2)
	inserted := !s.changed || !s.has
	for i := range min(topSize+1, r.order.Len()) {
		p, _ := r.order.GetAt(i)
		if !inserted && before(s.new, p) {
			list, inserted = append(list, s.new), true
		}
		if !s.changed || !s.had || p != s.old {
			list = append(list, p)
		}
	}
	if !inserted {
		list = append(list, s.new)
	}
	return encodeTop(c, list[:min(topSize, len(list))])
}

func encodeTop(c *change, list []place) []byte {
	value := []byte("{")
	if c.season.id != "" {
		value = fmt.Appendf(value, `"season":"%s",`, c.season.id)
	}
	value = append(value, `"entries":[`...)
	for i, p := range list {
		if i > 0 {
			value = append(value, ',')
		}
		value = fmt.Appendf(value, `{"player":"%s","score":%d}`, escapeName.Replace(p.player), p.sorted*c.sign)
	}
	return append(value, "]}"...)
}

func (s *step) reply(sign int64) string {
	score := func(p place, ok bool) string {
		if !ok {
			return "-"
		}
		return strconv.FormatInt(p.sorted*sign, 10)
	}
	return fmt.Sprintf("%s %s %d %d", score(s.new, s.has), score(s.old, s.had), s.rank, s.count)
}

// sweepInterval is how often seasons and operations are forgotten.
const sweepInterval = time.Minute

func (m *Memory) sweepLocked(now int64) {
	if now < m.sweepAt {
		return
	}
	m.sweepAt = now + sweepInterval.Milliseconds()
	for key, r := range m.boards {
		if r.hasEnded(now) {
			delete(m.boards, key)
		}
	}
	for id, o := range m.operations {
		if now >= o.until {
			delete(m.operations, id)
		}
	}
}

func (m *Memory) read(ctx context.Context, q query) (part, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.boards[q.board+" "+q.season.id]
	if r == nil || r.hasEnded(time.Now().UnixMilli()) {
		r = newRanking(0)
	}
	p := part{count: r.order.Len(), before: q.skip}
	if q.player != "" {
		place, found := r.players[q.player]
		if p.before = -1; !found {
			return p, nil
		}
		p.before = max(r.rank(place)-q.skip, 0)
	}
	for i := p.before; i < min(p.before+q.limit, p.count); i++ {
		place, _ := r.order.GetAt(i)
		p.entries = append(p.entries, Entry{i + 1, place.player, place.sorted * q.sign})
		meter.Add(ctx, len(place.player)+entryBytes)
	}
	return p, nil
}

// entryBytes is about how many bytes Redis sends for an entry besides the name of the player.
const entryBytes = 32
