package client

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

var modelSeeds = flag.Uint64("seeds", 40, "how many seeds TestFieldsModel runs")

// TestFieldsModel runs a client against a model of a broker: updates, leases, owners, small pages,
// lost connections, gaps, failovers and other prefixes, in random order. At each callback it
// compares the client's fields with the state at that id, and with what the callbacks have reported
// so far.
func TestFieldsModel(t *testing.T) {
	for seed := range *modelSeeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var m *model
				change := func(s *scenario, o *Options) {
					m = newModel(s, seed)
					o.OnFields, o.OnMessage = m.onFields, m.onMessage
				}
				runScenario(t, transports[0], change, func(s *scenario) { m.run() })
			})
		})
	}
}

// model is a broker with one channel and one client.
type model struct {
	*scenario
	rng   *rand.Rand
	start time.Time

	traceLock sync.Mutex // guards trace: the callbacks add to it, too
	trace     []string

	state    *state.State
	fold     *state.Map
	history  []step               // the steps whose entries are not lost
	at       map[int64]*state.Map // the fold at each id that is not lost
	log      []state.Logged       // entries above floor that are not lost
	base     int64                // the position in the empty channel
	floor    int64                // entries up to it were trimmed
	last     int64                // last id, also of a lost entry
	peer     *peer
	filter   state.Filter
	cursor   int64                  // position of the subscription
	pages    []string               // events that wait
	seriesID int64                  // id of the newest series
	held     bool                   // the client has received the last page, and missed nothing since then
	reported map[string]state.Shown // the fields according to the callbacks; nil before OnFields
}

// step is one change of the state, which a failover repeats.
type step struct {
	apply func(s *state.State, now int64, next func() int64) state.Result
	now   int64
	ids   []int64
}

func newModel(s *scenario, seed uint64) *model {
	m := &model{
		scenario: s, rng: rand.New(rand.NewPCG(seed, 1)), start: time.Now(),
		state: state.New(), fold: state.NewMap(0), at: map[int64]*state.Map{}, filter: state.Filter{State: true, By: true},
	}
	m.last = m.now() * 100
	m.base, m.fold.ID, m.floor = m.last, m.last, m.last
	m.remember()
	return m
}

// now is the store's clock.
func (m *model) now() int64 { return 1 + time.Since(m.start).Milliseconds() }

func (m *model) note(format string, args ...any) {
	m.traceLock.Lock()
	defer m.traceLock.Unlock()
	m.trace = append(m.trace, fmt.Sprintf(format, args...))
}

func (m *model) fail(format string, args ...any) {
	m.Helper()
	m.logTrace()
	m.Fatalf(format, args...)
}

// logTrace logs the last steps.
func (m *model) logTrace() {
	m.traceLock.Lock()
	defer m.traceLock.Unlock()
	for _, line := range m.trace[max(0, len(m.trace)-30):] {
		m.Log(line)
	}
}

func (m *model) run() {
	m.peer, _ = m.accept()
	m.subscribeAs("")
	for range 150 {
		switch m.rng.IntN(20) {
		case 0:
			m.reconnect()
			for m.rng.IntN(3) == 0 {
				m.reconnect()
			}
		case 1:
			m.trim()
		case 2:
			m.failOver()
		case 3:
			m.subscribeAs([]string{"", "doc/", "seat/"}[m.rng.IntN(3)])
		case 4, 5, 6:
			pause(m.Context(), time.Duration(m.rng.IntN(3000))*time.Millisecond)
		case 7, 8, 9, 10, 11, 12:
			m.change()
		default:
			m.deliver()
		}
		synctest.Wait()
	}
	for m.deliver() {
	}
	synctest.Wait()
	got, ok := m.client.Fields("news")
	if !ok || m.reported == nil {
		m.fail("the fields have not arrived")
	}
	m.compare(got, m.fold.Fields, "at the end")
}

// reconnect breaks the connection. Before the next one, the store may change.
func (m *model) reconnect() {
	m.note("the connection breaks")
	m.peer.drop()
	for range m.rng.IntN(3) {
		m.change()
	}
	switch m.rng.IntN(4) {
	case 0:
		m.loseSteps()
	case 1:
		m.trim()
	}
	m.peer, _ = m.accept()
	m.answerSubscribe(m.peer.expect(wire.TypeSubscribe))
	synctest.Wait()
}

// subscribeAs makes the client subscribe to the fields with a prefix.
func (m *model) subscribeAs(prefix string) {
	done := make(chan error, 1)
	go func() {
		_, err := m.client.Subscribe(m.Context(), "news", SubscribeOptions{State: true, Prefix: prefix})
		done <- err
	}()
	synctest.Wait()
	if len(m.peer.in) > 0 {
		m.note("subscribe to %q", prefix)
		m.answerSubscribe(m.peer.expect(wire.TypeSubscribe))
	}
	if err := <-done; err != nil {
		m.fail("subscribe: %v", err)
	}
}

// answerSubscribe begins a subscription as the protocol says, or continues that of the connection.
func (m *model) answerSubscribe(req wire.Request) {
	prefix := req.State.Prefix
	if held := m.held && m.filter.Prefix == prefix && *req.After >= m.seriesID; req.Held != held {
		m.fail("the subscribe has held %t, want %t", req.Held, held)
	}
	switch {
	case req.After == nil:
		m.cursor = m.fold.ID
		m.peer.answer(req, `{"type":"subscribed","channel":"news","id":%d}`, m.cursor)
	case m.filter.Prefix != prefix: // the connection has the subscription
		m.peer.answer(req, `{"type":"subscribed","channel":"news","id":%d}`, m.cursor)
	case m.at[*req.After] != nil && *req.After >= m.floor:
		m.cursor = *req.After
		m.peer.answer(req, `{"type":"subscribed","channel":"news","id":%d,"recovered":true}`, m.fold.ID)
		if req.Held {
			m.note("subscribed again after %d, held", m.cursor)
			m.pages = nil
			return
		}
	default:
		m.cursor = max(m.floor, min(*req.After, m.fold.ID))
		if m.rng.IntN(2) == 0 {
			m.cursor = m.fold.ID
		}
		m.peer.answer(req, `{"type":"subscribed","channel":"news","id":%d,"recovered":false}`, m.cursor)
	}
	if m.filter.Prefix != prefix {
		m.reported = nil
	}
	m.filter.Prefix = prefix
	m.series()
}

// series prepares the pages of a series, at an id that is not below the cursor.
func (m *model) series() {
	ids := []int64{m.fold.ID}
	for id := range m.at {
		if id >= m.cursor {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	id := ids[m.rng.IntN(len(ids))]
	m.note("pages at %d, cursor %d", id, m.cursor)
	m.pages, m.held, m.seriesID = nil, false, id
	pages := m.at[id].Pages(0, m.filter, 1+m.rng.IntN(100))
	for i, fields := range pages {
		raw, _ := json.Marshal(wire.Event{
			Type: wire.TypeState, Channel: "news", ID: &id, More: i < len(pages)-1,
			StateEvent: &wire.StateEvent{First: i == 0, Fields: fields},
		})
		m.pages = append(m.pages, string(raw))
	}
}

// deliver sends the next event of the subscription. It returns false if there is none.
func (m *model) deliver() bool {
	if len(m.pages) > 0 {
		m.note("%s", m.pages[0])
		m.peer.send(m.pages[0])
		m.pages = m.pages[1:]
		m.held = len(m.pages) == 0
		return true
	}
	if m.cursor < m.floor {
		m.gap(m.floor)
		return true
	}
	for _, logged := range m.log {
		if logged.ID <= m.cursor {
			continue
		}
		m.cursor = logged.ID
		ev := wire.Event{Type: wire.TypeMessage, Channel: "news", ID: &logged.ID, Data: logged.Entry.Data}
		if ev.StateEvent = logged.Entry.Show(m.filter); ev.StateEvent == nil && ev.Data == nil {
			continue
		}
		raw, _ := json.Marshal(ev)
		m.note("%s", raw)
		m.peer.send(string(raw))
		return true
	}
	return false
}

// gap moves the position to id and begins a new series.
func (m *model) gap(id int64) {
	m.note("gap from %d to %d", m.cursor, id)
	m.peer.sendf(`{"type":"gap","channel":"news","after":%d,"id":%d}`, m.cursor, id)
	m.cursor = id
	m.series()
}

// trim removes entries from the log.
func (m *model) trim() {
	if len(m.log) == 0 {
		return
	}
	n := m.rng.IntN(len(m.log)) + 1
	m.floor = m.log[n-1].ID
	m.log = m.log[n:]
	m.note("the log is trimmed up to %d", m.floor)
}

// failOver makes the store lose its last steps while the client is connected.
func (m *model) failOver() {
	m.loseSteps()
	if m.cursor > m.fold.ID {
		m.gap(max(m.floor, m.fold.ID))
		return
	}
	m.peer.sendf(`{"type":"gap","channel":"news","after":%d,"id":%d}`, m.cursor, m.cursor)
	m.series()
}

// loseSteps makes the store lose its last steps. Their ids do not come back.
func (m *model) loseSteps() {
	kept := max(0, len(m.history)-m.rng.IntN(5))
	m.history = m.history[:kept]
	m.state, m.fold, m.at = state.New(), state.NewMap(m.base), map[int64]*state.Map{}
	m.remember()
	var log []state.Logged
	for _, s := range m.history {
		ids := s.ids
		next := func() int64 { id := ids[0]; ids = ids[1:]; return id }
		log = append(log, m.applyEntries(s.apply(m.state, s.now, next))...)
	}
	m.floor = min(m.floor, m.fold.ID)
	m.log = slices.DeleteFunc(log, func(l state.Logged) bool { return l.ID <= m.floor })
	m.note("a failover keeps %d", m.fold.ID)
}

func (m *model) remember() {
	m.at[m.fold.ID] = &state.Map{ID: m.fold.ID, Fields: maps.Clone(m.fold.Fields)}
}

func (m *model) applyEntries(r state.Result) []state.Logged {
	for _, logged := range r.Entries {
		m.fold.Apply(logged.ID, logged.Entry)
		m.remember()
	}
	return r.Entries
}

// change makes a random change of the state.
func (m *model) change() {
	s := step{apply: m.randomChange(), now: m.now()}
	r := s.apply(m.state, s.now, func() int64 {
		m.last = max(s.now*100, m.last+1)
		s.ids = append(s.ids, m.last)
		return m.last
	})
	m.log = append(m.log, m.applyEntries(r)...)
	m.history = append(m.history, s)
}

func (m *model) randomChange() func(s *state.State, now int64, next func() int64) state.Result {
	client := state.Connection{Client: []string{"amy/tab", "bob/phone"}[m.rng.IntN(2)], Generation: int64(m.rng.IntN(3))}
	switch m.rng.IntN(8) {
	case 0:
		return func(s *state.State, now int64, next func() int64) state.Result { return s.End(now, next, client) }
	case 1:
		return func(s *state.State, now int64, next func() int64) state.Result {
			r, _ := s.Back(now, next, client)
			return r
		}
	case 2:
		return func(s *state.State, now int64, next func() int64) state.Result { return s.Sweep(now, next) }
	}
	u := &state.Update{Writer: state.BackendHolder, Client: client.Client, Generation: client.Generation}
	if u.Keep = 0; m.rng.IntN(4) == 0 {
		u.Keep = 5 * time.Second
	}
	if m.rng.IntN(2) == 0 {
		u.Data = fmt.Appendf(nil, "%d", m.rng.IntN(100))
	}
	names := []string{"a", "n", "doc/x", "doc/y", "seat/1", "seat/2", "seat/3", "$b", "$$hidden"}
	for _, i := range m.rng.Perm(len(names))[:m.rng.IntN(4)] {
		op := state.Op{
			Field: names[i], Kind: state.Kind(m.rng.IntN(4) + 1), Value: fmt.Appendf(nil, "%d", m.rng.IntN(100)),
			By: int64(m.rng.IntN(5)), Min: 0, Max: 200, TTL: time.Duration(m.rng.IntN(3)) * 1500 * time.Millisecond,
			Own: state.Ownership(m.rng.IntN(3)), Grace: []time.Duration{0, time.Second, state.GraceNever}[m.rng.IntN(3)],
		}
		u.Ops = append(u.Ops, op)
	}
	return func(s *state.State, now int64, next func() int64) state.Result {
		r, _ := s.Apply(u, now, next)
		return r
	}
}
