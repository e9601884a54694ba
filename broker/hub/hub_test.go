package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"switchboard/broker/dialect"
	"switchboard/broker/loop"
	"switchboard/broker/work"
	"switchboard/queue"
	"switchboard/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// harness is a hub over the in-memory store, with one loop.
type harness struct {
	*Hub
	t     *testing.T
	loop  *loop.Loop
	queue *countingQueue
	reg   *registry.Memory
	pool  *work.Pool
}

// countingQueue counts the reads and comparisons of channels and can fail them.
type countingQueue struct {
	*queue.Memory
	mu         sync.Mutex
	reads      int
	compared   []string // the channels
	fail       error
	afterRead  func() // runs once, after a channel was read and before the caller gets the answer
	afterHeads func() // the same for a comparison

	beforeHeads func() // runs once, before a comparison
}

func (q *countingQueue) ChannelHeads(ctx context.Context, known []queue.ChannelKnown) []queue.Outcome[queue.ChannelHead] {
	q.mu.Lock()
	for _, k := range known {
		q.compared = append(q.compared, k.Channel)
	}
	memory, fail, first, then := q.Memory, q.fail, q.beforeHeads, q.afterHeads
	q.beforeHeads, q.afterHeads = nil, nil
	q.mu.Unlock()
	if fail != nil {
		return slices.Repeat([]queue.Outcome[queue.ChannelHead]{{Err: fail}}, len(known))
	}
	if first != nil {
		first()
	}
	if then != nil {
		defer then()
	}
	return memory.ChannelHeads(ctx, known)
}

// takeCompared returns the channels that were compared since the last call, sorted.
func (q *countingQueue) takeCompared() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	names := q.compared
	q.compared = nil
	slices.Sort(names)
	return names
}

func (q *countingQueue) ReadChannel(ctx context.Context, channel string, after int64, limit int) (queue.Page, error) {
	q.mu.Lock()
	q.reads++
	memory, fail, then := q.Memory, q.fail, q.afterRead
	q.afterRead = nil
	q.mu.Unlock()
	if fail != nil {
		return queue.Page{}, fail
	}
	page, err := memory.ReadChannel(ctx, channel, after, limit)
	if then != nil {
		then()
	}
	return page, err
}

func (q *countingQueue) ReadChannels(ctx context.Context, reads []queue.ChannelRead) []queue.Outcome[queue.Page] {
	q.mu.Lock()
	q.reads++
	memory, fail, then := q.Memory, q.fail, q.afterRead
	q.afterRead = nil
	q.mu.Unlock()
	if fail != nil {
		return slices.Repeat([]queue.Outcome[queue.Page]{{Err: fail}}, len(reads))
	}
	if then != nil {
		defer then()
	}
	return memory.ReadChannels(ctx, reads)
}

// lose loses all messages.
func (q *countingQueue) lose() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Memory = queue.NewMemory(queue.Options{}, nil)
}

func (q *countingQueue) setError(fail error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fail = fail
}

func (q *countingQueue) readCount() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.reads
}

func newHarness(t *testing.T, o queue.Options) *harness {
	g := loop.NewGoroutine(0)
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { g.Run(stop) })
	t.Cleanup(func() { close(stop); running.Wait() })
	reg := registry.NewMemory(registry.Options{})
	s := &harness{t: t, loop: g.Loop, reg: reg, pool: work.New(8)}
	s.queue = &countingQueue{Memory: queue.NewMemory(o, nil)}
	s.Hub = New(Options{
		Loops: []*loop.Loop{g.Loop}, Pool: s.pool, Registry: reg, Queue: s.queue,
		ServerID: func() string { return "me" }, Messages: maker,
	})
	return s
}

// settle returns when no job or task is left.
func (s *harness) settle() {
	for range 50 { // tasks may queue jobs, and jobs may post tasks
		s.pool.Wait()
		s.do(func() {})
	}
}

// do runs f on the loop.
func (s *harness) do(f func()) {
	done := make(chan struct{})
	s.loop.Post(func() { defer close(done); f() })
	<-done
}

// append stores n messages without a hint.
func (s *harness) append(channel string, n int) (list []queue.Appended) {
	s.t.Helper()
	for i := range n {
		a, err := s.queue.AppendChannel(s.t.Context(), queue.ChannelPush{Channel: channel, Data: fmt.Appendf(nil, "%d", i)})
		if err != nil {
			s.t.Fatal(err)
		}
		list = append(list, a)
	}
	return list
}

// recorder is a subscriber that records what it receives.
type recorder struct {
	ids        []int64 // of messages; for a loss marker, minus the id at which its gap ends
	gaps       []int64 // the ids at which gaps ended
	backlogged bool
	writes     int
	holdGaps   bool // Gap returns it
	inDebt     bool // the store may not be read
	full       bool // each write makes it backlogged

	written, unused int // bytes that were charged
}

func (r *recorder) Backlogged() bool { return r.backlogged }
func (r *recorder) MayRead() bool    { return !r.inDebt }
func (r *recorder) Charge(written, unused int) {
	r.written += written
	r.unused += unused
}

func (r *recorder) ClientID() string { return "" }
func (r *recorder) Gap(_ *Subscription, _, id int64) (hold bool) {
	r.gaps = append(r.gaps, id)
	return r.holdGaps
}
func (r *recorder) Write(b *dialect.Batch) {
	r.writes++
	r.backlogged = r.backlogged || r.full
	for _, m := range b.Messages {
		id := m.ID
		if m.Event != nil { // a loss marker
			id = -*m.Event.ID
		}
		r.ids = append(r.ids, id)
	}
}

// subscribe subscribes a recorder.
func (s *harness) subscribe(channel string, after *int64) (*recorder, *Subscription, Position) {
	s.t.Helper()
	pos, err := s.Acquire(s.t.Context(), channel, after)
	if err != nil {
		s.t.Fatal(err)
	}
	r := &recorder{}
	sub := new(Subscription)
	s.do(func() {
		s.Subscribe(sub, s.loop, r, pos)
		sub.Start()
	})
	s.settle()
	return r, sub, pos
}

func (s *harness) expect(r *recorder, want []queue.Appended, label string) {
	s.t.Helper()
	s.settle()
	var ids []int64
	for _, a := range want {
		ids = append(ids, a.ID)
	}
	s.do(func() {
		if !slices.Equal(r.ids, ids) {
			s.t.Errorf("%s: got %d messages, want %d; got %.8v… want %.8v…", label, len(r.ids), len(ids), head(r.ids), head(ids))
		}
	})
}

func head(ids []int64) []int64 { return ids[:min(len(ids), 8)] }

func hint(c *Channel, a queue.Appended) { c.Hint(a.ID, a.Prev, []byte("1")) }

func TestHintsInAnyOrderGiveEachMessageOnce(t *testing.T) {
	for name, order := range map[string][]int{
		"in order":  {0, 1, 2, 3, 4},
		"reversed":  {4, 3, 2, 1, 0},
		"repeated":  {0, 0, 1, 1, 0, 2, 3, 2, 4, 4},
		"shuffled":  {2, 0, 4, 1, 3},
		"some lost": {0, 3},
		"last only": {4},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t, queue.Options{})
			r, _, _ := s.subscribe("a", nil)
			stored := s.append("a", 5)
			for _, n := range order {
				hint(s.Channel("a"), stored[n])
			}
			s.expect(r, stored, name)
		})
	}
}

func TestHintsInOrderNeedNoRead(t *testing.T) {
	s := newHarness(t, queue.Options{})
	r, _, _ := s.subscribe("a", nil)
	before := s.queue.readCount()
	stored := s.append("a", 100)
	for _, a := range stored {
		hint(s.Channel("a"), a)
	}
	s.expect(r, stored, "all")
	if n := s.queue.readCount(); n != before {
		t.Errorf("%d reads of the store, want none", n-before)
	}
}

func TestBackloggedSubscriberKeepsOnlyItsCursor(t *testing.T) {
	s := newHarness(t, queue.Options{})
	slow, sub, _ := s.subscribe("a", nil)
	quick, _, _ := s.subscribe("a", nil)
	s.do(func() { slow.backlogged = true })
	stored := s.append("a", 1000) // more than the tail holds
	for _, a := range stored {
		hint(s.Channel("a"), a)
	}
	s.expect(quick, stored, "the fast subscriber")
	s.do(func() {
		if slow.writes != 0 {
			t.Errorf("%d writes to a backed-up socket", slow.writes)
		}
		slow.backlogged = false
		sub.Resume()
	})
	s.expect(slow, stored, "the slow subscriber, after it reads again")
}

func TestTrimmedMessagesAreAGap(t *testing.T) {
	s := newHarness(t, queue.Options{ChannelCap: 10})
	r, sub, _ := s.subscribe("a", nil)
	s.do(func() { r.backlogged = true })
	stored := s.append("a", 500)
	for _, a := range stored {
		hint(s.Channel("a"), a)
	}
	s.settle()
	s.do(func() { r.backlogged = false; sub.Resume() })
	s.settle()
	s.do(func() {
		if len(r.gaps) != 1 {
			t.Fatalf("gaps %v, want one", r.gaps)
		}
		last := stored[len(stored)-1].ID
		if r.ids[len(r.ids)-1] != last || !slices.IsSorted(r.ids) || r.ids[0] <= r.gaps[0] {
			t.Errorf("after the gap to %d, the ids are %v", r.gaps[0], r.ids)
		}
	})
}

func TestTickRetriesFailedDrain(t *testing.T) {
	s := newHarness(t, queue.Options{})
	r, _, _ := s.subscribe("a", nil)
	stored := s.append("a", 2)
	s.queue.setError(errors.New("unavailable"))
	hint(s.Channel("a"), stored[1]) // its predecessor is missing
	s.settle()
	s.queue.setError(nil)
	s.Tick()
	s.expect(r, stored, "after the tick")
}

func TestUnusedChannelIsUnbound(t *testing.T) {
	s := newHarness(t, queue.Options{})
	_, sub, _ := s.subscribe("a", nil)
	servers := func() []string {
		list, err := s.reg.ChannelServers(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	s.Tick()
	s.settle()
	if !slices.Equal(servers(), []string{"me"}) {
		t.Fatalf("bound to %v with a subscriber", servers())
	}
	s.do(func() { s.Unsubscribe(sub) })
	s.Tick()
	s.settle()
	if len(servers()) != 0 || s.ChannelCount() != 0 {
		t.Fatalf("bound to %v, %d channels held, without a subscriber", servers(), s.ChannelCount())
	}
	r, _, _ := s.subscribe("a", nil) // and bound again
	stored := s.append("a", 1)
	hint(s.Channel("a"), stored[0])
	s.expect(r, stored, "after it was bound again")
}

func TestIdleTailIsFreed(t *testing.T) {
	s := newHarness(t, queue.Options{})
	r, _, _ := s.subscribe("a", nil)
	stored := s.append("a", 10)
	for _, a := range stored {
		hint(s.Channel("a"), a)
	}
	s.expect(r, stored, "before")
	s.Tick()
	s.Tick()
	if tail := s.Channel("a").tail.Load(); len(tail.messages) != 0 || tail.last != stored[9].ID {
		t.Errorf("the idle tail holds %d messages up to %d", len(tail.messages), tail.last)
	}
	more := s.append("a", 1)
	hint(s.Channel("a"), more[0])
	s.expect(r, append(stored, more...), "after")
}

func TestRebindBindsUnderTheNewID(t *testing.T) {
	s := newHarness(t, queue.Options{})
	s.subscribe("a", nil)
	id := "me"
	s.opts.ServerID = func() string { return id }
	id = "me-again"
	if _, failed, err := s.Rebind(t.Context(), []string{"a", "unknown"}, "me"); err != nil || failed != nil {
		t.Fatal(failed, err)
	}
	if list, _ := s.reg.ChannelServers(t.Context(), "a"); !slices.Equal(list, []string{"me-again"}) {
		t.Errorf("bound to %v", list)
	}
	s.settle()
}

func TestTailIsBounded(t *testing.T) {
	tl := &tail{}
	for n := range int64(5000) {
		tl = tl.extend([]*dialect.Message{maker.Message("a", n+1, make([]byte, 100+n%2000))})
	}
	if len(tl.messages) > maxTailMessages || tl.bytes > maxTailBytes || tl.last != 5000 {
		t.Errorf("%d messages, %d bytes, up to %d", len(tl.messages), tl.bytes, tl.last)
	}
	bytes := int32(0)
	for _, e := range tl.messages {
		bytes += int32(e.Size())
	}
	if bytes != tl.bytes {
		t.Errorf("%d bytes are counted, %d are held", tl.bytes, bytes)
	}
	if _, ok := tl.after(tl.base); !ok {
		t.Error("the tail does not continue from its base")
	}
	if _, ok := tl.after(tl.base - 1); ok {
		t.Error("the tail continues from an id before its base")
	}
}
