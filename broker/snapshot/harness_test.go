package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"switchboard/broker/delivery"
	"switchboard/broker/dialect"
	"switchboard/broker/dialect/native"
	"switchboard/broker/hub"
	"switchboard/broker/loop"
	"switchboard/broker/peer"
	"switchboard/broker/work"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is the store of several servers. It counts the reads of states and the sweeps.
type store struct {
	*queue.Memory
	registry *registry.Memory
	servers  map[string]*server

	mu        sync.Mutex // guards the fields below
	reads     int
	sweeps    []string // the servers that swept
	afterRead func()   // runs once, after a state was read and before the caller gets the answer
	fail      error    // of StepStates
	dropHints bool
}

func newStore(o queue.Options) *store {
	s := &store{registry: registry.NewMemory(registry.Options{}), servers: make(map[string]*server)}
	s.Memory = queue.NewMemory(o, func(channel string) []string {
		list, _ := s.registry.ChannelServers(context.Background(), channel) // in memory it cannot fail
		return list
	})
	return s
}

func (s *store) ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage] {
	s.mu.Lock()
	s.reads += len(reads)
	afterRead := s.afterRead
	s.afterRead = nil
	s.mu.Unlock()
	out := s.Memory.ReadStates(ctx, reads)
	if afterRead != nil {
		afterRead()
	}
	return out
}

func (s *store) readCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

// hint delivers a hint to a server.
func (s *store) hint(to string, h peer.Hint) {
	s.mu.Lock()
	server, dropped := s.servers[to], s.dropHints
	s.mu.Unlock()
	if server == nil || dropped {
		return
	}
	if c := server.hub.Channel(h.Name); c != nil {
		c.Hint(h.ID, h.Prev, h.Data)
	}
}

func (s *store) setDropHints(drop bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropHints = drop
}

// countingMaker counts the pages that it encodes.
type countingMaker struct {
	dialect.Maker
	mu    sync.Mutex
	pages int
}

func (m *countingMaker) Event(e wire.Event) *dialect.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pages++
	return m.Maker.Event(e)
}

// server is a server with one loop.
type server struct {
	*Snapshots
	t      *testing.T
	store  *store
	hub    *hub.Hub
	loop   *loop.Loop
	pool   *work.Pool
	pusher *delivery.Pusher
	maker  *countingMaker
	live   atomic.Bool // as the other servers know
}

// newServer starts a server. Its Snapshots sweep if sweeps is true.
func newServer(t *testing.T, st *store, id string, bytes int, sweeps bool) *server {
	g := loop.NewGoroutine(0)
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { g.Run(stop) })
	s := &server{t: t, store: st, loop: g.Loop, pool: work.NewOn(64, func(worker func()) { go worker() }), maker: &countingMaker{Maker: native.New(0)}}
	s.live.Store(true)
	self := func() string { return id }
	s.hub = hub.New(hub.Options{
		Loops: []*loop.Loop{g.Loop}, Pool: s.pool, Registry: st.registry, Queue: st, ServerID: self, Messages: s.maker,
		PositionTTL: 6 * time.Hour,
	})
	isLive := func(server string) bool { return st.servers[server].live.Load() }
	s.pusher = delivery.New(delivery.Options{
		Registry: st.registry, Queue: st, States: st, Self: self, Live: isLive,
		Local: func(h peer.Hint, _ state.Message) { st.hint(id, h) }, Remote: st.hint, Stored: func(string, time.Duration) {},
	})
	o := Options{Hub: s.hub, Queue: st, Pool: s.pool, Messages: s.maker, Bytes: bytes}
	if sweeps {
		o.Sweeps = &Sweeps{Self: self, Live: isLive, Servers: st.registry.ChannelServers, Step: s.step(id)}
	}
	s.Snapshots = New(o)
	st.mu.Lock()
	st.servers[id] = s
	st.mu.Unlock()
	t.Cleanup(func() {
		s.Close()
		s.pool.Wait()
		close(stop)
		running.Wait()
	})
	return s
}

// step returns the Sweeps.Step of a server.
func (s *server) step(id string) func(context.Context, []queue.StateStep) []queue.Outcome[queue.Appended] {
	return func(ctx context.Context, steps []queue.StateStep) []queue.Outcome[queue.Appended] {
		s.store.mu.Lock()
		s.store.sweeps = append(s.store.sweeps, id)
		fail := s.store.fail
		s.store.mu.Unlock()
		if fail != nil {
			return []queue.Outcome[queue.Appended]{{Err: fail}}
		}
		return s.pusher.StepStates(ctx, steps)
	}
}

// settle returns when no job or task is left.
func (s *server) settle() {
	for range 20 {
		s.pool.Wait()
		s.do(func() {})
	}
}

func (s *server) do(f func()) {
	done := make(chan struct{})
	s.loop.Post(func() { defer close(done); f() })
	<-done
}

// compare has the hub read what it has missed.
func (s *server) compare() {
	s.t.Helper()
	if err := s.hub.Compare(s.t.Context(), 0); err != nil {
		s.t.Error(err)
	}
}

// sink is a subscriber that ignores what it receives.
type sink struct{}

func (sink) ClientID() string                                { return "" }
func (sink) Backlogged() bool                                { return false }
func (sink) MayRead() bool                                   { return true }
func (sink) Charge(int, int)                                 {}
func (sink) Gap(*hub.Subscription, int64, int64) (hold bool) { return false }
func (sink) Write(*dialect.Batch)                            {}

// subscribe begins a subscription that sees the state.
func (s *server) subscribe(channel string) (*hub.Channel, *hub.Subscription) {
	s.t.Helper()
	pos, err := s.hub.Acquire(s.t.Context(), channel, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	sub := new(hub.Subscription)
	s.do(func() {
		if err := s.hub.SubscribeState(sub, s.loop, sink{}, pos, state.Filter{State: true}); err != nil {
			s.t.Error(err)
		}
		sub.Start()
	})
	return pos.Channel, sub
}

// push stores an update and sends the hints.
func (s *server) push(channel string, u state.Update) delivery.ChannelResult {
	s.t.Helper()
	r, err := s.pusher.ToChannel(s.t.Context(), channel, delivery.Payload{Update: &u})
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// set is an operation that sets a field. value is JSON.
func set(field, value string) state.Op {
	return state.Op{Field: field, Kind: state.Set, Value: []byte(value)}
}

// sets is an update that sets fields to 1.
func sets(fields ...string) (u state.Update) {
	for _, f := range fields {
		u.Ops = append(u.Ops, set(f, "1"))
	}
	return u
}

// pages returns pages of a channel, and their fields without ids, in order.
func (s *server) pages(c *hub.Channel, from int64, prefix string) (*Series, []string) {
	s.t.Helper()
	series, err := s.Pages(s.t.Context(), c, from, prefix)
	if err != nil {
		s.t.Fatal(err)
	}
	if series.ID < from {
		s.t.Fatalf("the pages have the id %d, below %d", series.ID, from)
	}
	return series, fieldsOf(s.t, c.Name, series)
}

// fieldsOf checks the form of a series and returns its fields as name=value, in order.
func fieldsOf(t *testing.T, channel string, series *Series) (fields []string) {
	t.Helper()
	for i, m := range series.Pages {
		e, err := wire.DecodeEvent(m.Prepared.Payload())
		if err != nil {
			t.Fatal(err)
		}
		if e.Type != wire.TypeState || e.Channel != channel || *e.ID != series.ID ||
			e.First != (i == 0) || e.More != (i < len(series.Pages)-1) {
			t.Errorf("page %d of %d: %.80s", i, len(series.Pages), m.Prepared.Payload())
		}
		d := json.NewDecoder(bytes.NewReader(e.Fields))
		if token, err := d.Token(); token != json.Delim('{') {
			t.Fatal(token, err)
		}
		for d.More() {
			name, _ := d.Token()
			var entry []json.RawMessage
			if err := d.Decode(&entry); err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf("%s=%s", name, entry[1])
			if len(entry) > 3 {
				text += " away"
			}
			fields = append(fields, text)
		}
	}
	if !slices.IsSorted(fields) {
		t.Errorf("the fields are not in order: %.200q", fields)
	}
	return fields
}
