package session_test

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"switchboard/broker/dialect"
	"switchboard/broker/hub"
	"switchboard/broker/loop"
	"switchboard/broker/session"
	"switchboard/broker/snapshot"
	"switchboard/broker/transport"
	"switchboard/broker/work"
	"switchboard/internal/dialecttest"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// TestMain runs all tests once per dialect and checks for leaked goroutines. It ignores those of
// gnet's pool, which start when the package is loaded.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(dialecttest.EachDialect{M: m, Spoken: &spoken}, goleak.IgnoreCurrent())
}

// socket is a connection that records what is written. The test says when its peer reads.
type socket struct {
	encoding   *dialect.Encoding
	full       bool // the next write does not go out
	backlogged bool
	corks      int  // calls of Cork without Uncork
	held       bool // something was written while corked
	heldBytes  int  // written while corked; of many, the connection holds none back
	written    []wire.Event
	bytes      int
	writes     int
	discard    bool // count writes, but do not record them
	pings      int
	checks     int // calls of Backlogged
	closed     wire.CloseReason
	afterMS    int64
	addr       string // of the peer; zero means 192.0.2.1:1
	// sending is called before an event is written. Nil means no call.
	sending func(wire.Event)
}

func newSocket() *socket { return &socket{encoding: encoding()} }

// Send implements transport.Conn.
func (s *socket) Send(e wire.Event) {
	if s.sending != nil {
		s.sending(e)
	}
	if s.countWrite(); !s.discard {
		s.record(s.encoding.AppendEvent(nil, e))
	}
}

// Write implements transport.Conn.
func (s *socket) Write(b *dialect.Batch) {
	s.countWrite()
	if f := s.encoding.Form; s.discard && f != nil {
		b.Bytes(f)
		return
	} else if f != nil {
		s.record(b.Bytes(f))
		return
	}
	for _, m := range b.Messages {
		s.record(s.encoding.AppendMessage(nil, m))
	}
}

// countWrite counts a write. All that is written while corked is one write.
func (s *socket) countWrite() {
	if s.held = true; s.corks == 0 {
		s.Flush()
	}
}

// record decodes frames as the client does.
func (s *socket) record(frames []byte) {
	s.bytes += len(frames)
	if s.heldBytes += len(frames); s.heldBytes > 16<<10 {
		s.Flush()
	}
	for len(frames) > 0 {
		_, unit, rest := dialect.NextFrame(frames)
		e, err := spoken.Event(unit)
		if err != nil {
			panic(err)
		}
		s.written, frames = append(s.written, e), rest
	}
}

// Cork implements transport.Conn.
func (s *socket) Cork() { s.corks++ }

// Flush implements transport.Conn.
func (s *socket) Flush() {
	if s.heldBytes = 0; s.held {
		s.held = false
		s.writes++
		s.backlogged = s.backlogged || s.full
	}
}

// Uncork implements transport.Conn.
func (s *socket) Uncork() {
	if s.corks--; s.corks == 0 {
		s.Flush()
	}
}

// Liveness implements transport.Conn.
func (s *socket) Liveness() dialect.Liveness { return s.encoding.Liveness() }

func (s *socket) Backlogged() bool   { s.checks++; return s.backlogged }
func (s *socket) Ping()              { s.pings++ }
func (s *socket) RemoteAddr() string { return cmp.Or(s.addr, "192.0.2.1:1") }
func (s *socket) RemoteAddrPort() netip.AddrPort {
	return netip.MustParseAddrPort(s.RemoteAddr())
}
func (s *socket) Close(reason wire.CloseReason, _ string, afterMS int64) {
	s.Flush()
	s.closed, s.afterMS = reason, afterMS
}

// Queue holds the methods of a queue that sessions and their hub call.
type Queue interface {
	session.Queue
	hub.Queue
	snapshot.Queue
}

// harness is a manager with a store in memory, and one session of it. Only the test calls Tick.
type harness struct {
	*session.Manager
	t         testing.TB
	loop      *loop.Loop
	pool      *work.Pool
	methods   *work.Pool
	queue     *queue.Memory
	registry  *registry.Memory
	hub       *hub.Hub
	snapshots *snapshot.Snapshots
	serverID  atomic.Pointer[string]
	ahead     atomic.Int64 // of the stores' clock, ns
	// hints makes the hub receive hints of the stored messages and changes.
	hints bool
	// step changes states. Tests replace it to make the store fail.
	step func(context.Context, []queue.StateStep) []queue.Outcome[queue.Appended]
	// beforePublish is called in the pool before a message is stored, afterPublish after it. Their
	// errors are those of the publish. Nil means no call.
	beforePublish func(session.Publication) error
	afterPublish  func() error
	sock          *socket
	receiver      transport.Receiver
}

// newHarness returns a harness whose session is the connected client "phone".
func newHarness(t testing.TB, o session.Options) *harness {
	return newHarnessOn(t, o, unwrapped)
}

func unwrapped(q Queue) Queue { return q }

// newHarnessOn is newHarness with a wrapper around the queue.
func newHarnessOn(t testing.TB, o session.Options, wrap func(Queue) Queue) *harness {
	h := newUnconnected(t, o, wrap, connect("phone", "t"))
	h.onLoop(func() {
		if len(h.sock.written) == 0 || h.sock.written[0].Type != wire.TypeConnected {
			t.Fatalf("not connected: %v", h.sock.written)
		}
		h.sock.written, h.sock.bytes = nil, 0
	})
	return h
}

// newUnconnected returns a harness whose session was accepted with the given requests and received
// no message.
func newUnconnected(t testing.TB, o session.Options, wrap func(Queue) Queue, requests []wire.Request) *harness {
	newPool := func() *work.Pool { return work.NewOn(8, func(worker func()) { go worker() }) } // idle workers end at once, as a synctest bubble requires
	h := &harness{t: t, loop: loop.New(0), pool: cmp.Or(o.Pool, newPool()), methods: newPool(), sock: newSocket()}
	now := func() time.Time { return time.Now().Add(time.Duration(h.ahead.Load())) }
	h.queue = queue.NewMemory(queue.Options{Now: now}, nil)
	wrapped := wrap(h.queue)
	h.registry = registry.NewMemory(registry.Options{Now: now})
	reg, self := h.registry, func() string { return *h.serverID.Load() }
	h.serverID.Store(new("me"))
	o.MethodPool = h.methods
	if wrapper, ok := o.Registry.(interface{ wrap(session.Registry) }); ok {
		wrapper.wrap(reg)
	} else {
		o.Registry = reg
	}
	o.Loops, o.Pool, o.Queue, o.ServerID = []*loop.Loop{h.loop}, h.pool, wrapped, self
	o.Hub = hub.New(hub.Options{Loops: o.Loops, Pool: h.pool, Registry: reg, Queue: wrapped, ServerID: self, Messages: spoken.New(ping)})
	h.hub = o.Hub
	h.snapshots = snapshot.New(snapshot.Options{
		Hub: h.hub, Queue: wrapped, Pool: h.pool, Messages: spoken.New(ping),
		Away: func(channel string, owners []string) { h.OwnersAway(channel, owners) },
	})
	h.step = h.queue.StepStates
	o.Publish, o.StepStates, o.Snapshots = h.publish, h.stepStates, h.snapshots
	h.Manager = session.New(o)
	h.onLoop(func() { h.receiver = h.Accept(h.loop, h.sock, requests) })
	h.settle()
	return h
}

// publish implements session.Options.Publish.
func (h *harness) publish(ctx context.Context, p session.Publication) (session.Published, error) {
	if h.beforePublish != nil {
		if err := h.beforePublish(p); err != nil {
			return session.Published{}, err
		}
	}
	a, err := h.queue.AppendChannel(ctx, queue.ChannelPush{
		Channel: p.Channel, Data: p.Entry, Key: p.Key, ExistingOnly: p.ExistingOnly, Update: p.Update,
	})
	h.hintMessage(p.Channel, a, p.Message)
	if h.afterPublish != nil && err == nil {
		err = h.afterPublish()
	}
	return session.Published{ID: a.ID, New: a.Prev == 0, Numbers: a.Numbers}, err
}

// stepStates implements session.Options.StepStates.
func (h *harness) stepStates(ctx context.Context, steps []queue.StateStep) []queue.Outcome[queue.Appended] {
	outcomes := h.step(ctx, steps)
	for i, o := range outcomes {
		h.hint(steps[i].Channel, o.Value)
	}
	return outcomes
}

func (h *harness) hint(channel string, a queue.Appended) { h.hintMessage(channel, a, state.Message{}) }

func (h *harness) hintMessage(channel string, a queue.Appended, decoded state.Message) {
	if c := h.hub.Channel(channel); h.hints && c != nil && a.ID > 0 {
		c.HintMessage(a.ID, a.Prev, a.Data, decoded)
	}
}

// onLoop runs f on the loop and waits for it.
func (h *harness) onLoop(f func()) {
	done := make(chan struct{})
	h.loop.Post(func() { defer close(done); f() })
	<-done
}

// settle returns when nothing is under way. A message leads to at most five store calls in a row.
func (h *harness) settle() {
	for range 5 {
		h.methods.Wait()
		h.pool.Wait()
		h.onLoop(func() {})
	}
}

// tick calls Tick n times.
func (h *harness) tick(n int) {
	for range n {
		h.Tick()
		h.settle()
	}
}

// setBacklog has the peer read everything. If full is true, the peer then leaves a pong unread.
func (h *harness) setBacklog(full bool) {
	h.onLoop(func() { h.sock.full, h.sock.backlogged = full, false })
	if full {
		h.writeUnrecorded()
	}
}

// writeUnrecorded makes the session write a pong. The socket counts it but does not record it.
func (h *harness) writeUnrecorded() {
	h.onLoop(func() {
		h.sock.discard = true
		receive(h.receiver, `{"type":"ping"}`)
		h.sock.discard = false
	})
}

// drainBacklog has the peer read everything, and then stop reading again.
func (h *harness) drainBacklog() {
	h.onLoop(func() {
		h.sock.full, h.sock.backlogged = false, false
		h.receiver.Writable()
	})
	h.setBacklog(true)
	h.settle()
}

// send has the session receive a message.
func (h *harness) send(format string, args ...any) {
	h.onLoop(func() { receive(h.receiver, format, args...) })
	h.settle()
}

// received returns the events that were written since the last call.
func (h *harness) received() (events []wire.Event) {
	h.onLoop(func() { events, h.sock.written = h.sock.written, nil })
	return events
}

// expect sends a message and checks the event that answers it. code is "" unless it is an error.
func (h *harness) expect(typ, code, text, message string, args ...any) wire.Event {
	h.t.Helper()
	h.send(message, args...)
	events := h.received()
	if len(events) == 0 || events[0].Type != typ || events[0].Code != code || !strings.Contains(events[0].Message, text) {
		h.t.Fatalf("%s: %+v, want %s %s %q", fmt.Sprintf(message, args...), events, typ, code, text)
	}
	return events[0]
}

// wantClosed checks the reason for which the connection was closed, "" for an open one.
func (h *harness) wantClosed(reason wire.CloseReason) {
	h.t.Helper()
	h.onLoop(func() {
		if h.sock.closed != reason {
			h.t.Errorf("closed as %q, want %q", h.sock.closed, reason)
		}
	})
}

// types lists the types of events, with the codes of errors.
func types(events []wire.Event) string {
	var list []string
	for _, e := range events {
		list = append(list, strings.TrimSuffix(e.Type+":"+e.Code, ":"))
	}
	return strings.Join(list, " ")
}

// countRefusals has the refusals counted in the returned map.
func countRefusals(o session.Options) (session.Options, map[string]int) {
	refused := map[string]int{}
	o.Metrics.Refused = func(what string) { refused[what]++ }
	return o, refused
}
