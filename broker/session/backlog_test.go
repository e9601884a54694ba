package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"switchboard/broker/dialect"
	"switchboard/broker/hub"
	"switchboard/broker/loop"
	"switchboard/broker/session"
	"switchboard/broker/transport"
	"switchboard/broker/work"
	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// What is there already are the goroutines of gnet's pool, which it starts when it is loaded.
func TestMain(m *testing.M) { goleak.VerifyTestMain(allDialects{m}, goleak.IgnoreCurrent()) }

// socket is a connection whose peer reads when the test says so.
type socket struct {
	full       bool // the next write stays behind
	backlogged bool
	written    []wire.Event
	bytes      int
	writes     int
	speaker    *dialect.Speaker
	corks      int  // calls of Cork less those of Uncork
	held       bool // something was written while corked
	blind      bool // does not look at what is written
	pings      int
	looks      int // whether it is backed up
	closed     wire.CloseReason
	afterMS    int64
}

func newSocket() *socket { return &socket{speaker: speaker()} }

func (s *socket) Send(e wire.Event) {
	if s.wrote(); !s.blind {
		s.see(s.speaker.AppendEvent(nil, e))
	}
}

func (s *socket) Write(b *dialect.Batch) {
	if s.wrote(); s.blind {
		return
	}
	if f := s.speaker.Form; f != nil {
		s.see(b.Bytes(f))
		return
	}
	for _, m := range b.Messages {
		s.see(s.speaker.AppendMessage(nil, m))
	}
}

// wrote counts a write: what is written while corked is one.
func (s *socket) wrote() {
	if s.held = true; s.corks == 0 {
		s.Flush()
	}
}

// see decodes frames as the client does.
func (s *socket) see(frames []byte) {
	s.bytes += len(frames)
	for len(frames) > 0 {
		_, unit, rest := dialect.NextFrame(frames)
		e, err := spoken.Event(unit)
		if err != nil {
			panic(err)
		}
		s.written, frames = append(s.written, e), rest
	}
}

func (s *socket) Cork() { s.corks++ }

func (s *socket) Flush() {
	if s.held {
		s.held = false
		s.writes++
		s.backlogged = s.backlogged || s.full
	}
}

func (s *socket) Uncork() {
	if s.corks--; s.corks == 0 {
		s.Flush()
	}
}

func (s *socket) Liveness() dialect.Liveness { return s.speaker.Liveness() }

func (s *socket) Backlogged() bool   { s.looks++; return s.backlogged }
func (s *socket) Ping()              { s.pings++ }
func (s *socket) RemoteAddr() string { return "192.0.2.1:1" }
func (s *socket) Close(reason wire.CloseReason, _ string, afterMS int64) {
	s.Flush()
	s.closed, s.afterMS = reason, afterMS
}

// desk is one session of a manager, with a store in memory. Nothing ticks but by the test's hand.
type desk struct {
	*session.Manager
	t     *testing.T
	loop  *loop.Loop
	pool  *work.Pool
	queue queue.Queue
	hub   *hub.Hub
	sock  *socket
	to    transport.Receiver
}

func newDesk(t *testing.T, o session.Options) *desk {
	return newDeskOn(t, o, plain)
}

func plain(q queue.Queue) queue.Queue { return q }

// newDeskOn is newDesk with something between the manager and the queue.
func newDeskOn(t *testing.T, o session.Options, over func(queue.Queue) queue.Queue) *desk {
	d := greeted(t, o, over, connect("phone", "t"))
	d.do(func() {
		if len(d.sock.written) == 0 || d.sock.written[0].Type != wire.TypeConnected {
			t.Fatalf("not connected: %v", d.sock.written)
		}
		d.sock.written, d.sock.bytes = nil, 0
	})
	return d
}

// greeted is a session of which no more is known than hello.
func greeted(t *testing.T, o session.Options, over func(queue.Queue) queue.Queue, hello []wire.Request) *desk {
	pool := work.NewOn(8, func(worker func()) { go worker() }) // whose workers go home at once, as a synctest bubble needs it
	d := &desk{t: t, loop: loop.New(0), pool: pool, queue: over(queue.NewMemory(queue.Options{}, nil)), sock: newSocket()}
	reg, self := registry.NewMemory(registry.Options{}), func() string { return "me" }
	o.Loops, o.Pool, o.Queue, o.Registry, o.ServerID = []*loop.Loop{d.loop}, d.pool, d.queue, reg, self
	o.Hub = hub.New(hub.Options{Loops: o.Loops, Pool: d.pool, Registry: reg, Queue: d.queue, ServerID: self, Messages: spoken.New(ping)})
	d.hub = o.Hub
	o.Publish = func(ctx context.Context, channel string, data []byte, known bool) (session.Published, error) {
		a, err := d.queue.AppendChannel(ctx, queue.ChannelPush{Channel: channel, Data: data, Known: known})
		return session.Published{ID: a.ID, New: a.Prev == 0}, err
	}
	d.Manager = session.New(o)
	d.do(func() { d.to = d.Accept(d.loop, d.sock, hello) })
	d.settle()
	return d
}

// do runs f on the loop.
func (d *desk) do(f func()) {
	done := make(chan struct{})
	d.loop.Post(func() { defer close(done); f() })
	<-done
}

// settle returns when nothing is under way: each call to the store may follow one before.
func (d *desk) settle() {
	for range 5 {
		d.pool.Wait()
		d.do(func() {})
	}
}

func (d *desk) tick(n int) {
	for range n {
		d.Tick()
		d.settle()
	}
}

// backlog has the peer read everything, or leave the answer to a ping unread.
func (d *desk) backlog(full bool) {
	d.do(func() { d.sock.full, d.sock.backlogged = full, false })
	if full {
		d.pong()
	}
}

// pong has something written that is not looked at.
func (d *desk) pong() {
	d.do(func() {
		d.sock.blind = true
		receive(d.to, []byte(`{"type":"ping"}`))
		d.sock.blind = false
	})
}

// drained is the peer reading everything, and then nothing again.
func (d *desk) drained() {
	d.do(func() {
		d.sock.full, d.sock.backlogged = false, false
		d.to.Writable()
	})
	d.backlog(true)
	d.settle()
}

func (d *desk) say(format string, args ...any) {
	d.do(func() { receive(d.to, fmt.Appendf(nil, format, args...)) })
	d.settle()
}

func (d *desk) want(reason wire.CloseReason) {
	d.t.Helper()
	d.do(func() {
		if d.sock.closed != reason {
			d.t.Errorf("closed as %q, want %q", d.sock.closed, reason)
		}
	})
}

// TestSlowIsClosedOnlyAfterSlowAfter: who drains its backlog now and then has all the time again.
func TestSlowIsClosedOnlyAfterSlowAfter(t *testing.T) {
	d := newDesk(t, session.Options{Timing: session.Timing{Backlog: 5 * time.Second}})
	d.backlog(true)
	for range 10 {
		d.tick(4)
		d.want("")
		d.drained()
	}
	d.tick(4)
	d.want("")
	d.tick(1)
	d.want(wire.CloseSlow)
}

// TestBacklogThatDrainsIsASignOfLife: the answer to the ping is behind what the client has yet to read.
func TestBacklogThatDrainsIsASignOfLife(t *testing.T) {
	pingEvery(t, 2*time.Second)
	d := newDesk(t, session.Options{Timing: session.Timing{Backlog: time.Hour}})
	d.backlog(true)
	for range 10 {
		d.tick(3)
		d.want("")
		d.drained()
	}
	d.tick(4)
	d.want(wire.CloseIdle)
}

// TestPingBehindABacklog is answered in the end, and once: not all that came meanwhile.
func TestPingBehindABacklog(t *testing.T) {
	d := newDesk(t, session.Options{})
	d.backlog(true)
	for n := range 1000 {
		d.do(func() { receive(d.to, fmt.Appendf(nil, `{"type":"ping","ref":%d}`, n)) })
	}
	d.say(`{"type":"history","channel":"a","ref":5000}`)
	d.want("")
	d.do(func() {
		if len(d.sock.written) > 0 {
			t.Errorf("written behind a backlog: %v", d.sock.written)
		}
	})
	d.backlog(false)
	d.do(d.to.Writable)
	d.settle()
	d.do(func() {
		w := d.sock.written
		if len(w) != 2 || w[0].Type != "pong" || w[0].Ref.Value != 999 || w[1].Type != "history" {
			t.Errorf("answered with %v, want the pong to the last ping and the history", w)
		}
	})
}

// TestRepliesThatNobodyReads do not pile up.
func TestRepliesThatNobodyReads(t *testing.T) {
	d := newDesk(t, session.Options{})
	reply := []byte(`"` + strings.Repeat("x", 10<<10) + `"`)
	for n := range 20 { // as long as it reads there may be any number
		d.Reply("phone", int64(n), reply)
	}
	d.backlog(true)
	for range 3 {
		for n := range 6 {
			d.Reply("phone", int64(n), reply)
		}
		d.drained()
	}
	d.want("")
	d.do(func() { d.sock.bytes = 0 })
	for n := range 100 {
		d.Reply("phone", int64(n), reply)
	}
	d.settle()
	d.want(wire.CloseOverloaded)
	d.do(func() {
		if d.sock.bytes > 80<<10 || d.sock.afterMS == 0 {
			t.Errorf("%d bytes are kept, to come back after %d ms", d.sock.bytes, d.sock.afterMS)
		}
	})
}

// TestHistoryIsOneWrite: it comes in pages that a connection may leave unread.
func TestHistoryIsOneWrite(t *testing.T) {
	d := newDesk(t, session.Options{})
	const messages = 40
	for n := range messages {
		push := queue.ChannelPush{Channel: "a", Data: fmt.Appendf(nil, `"%d%s"`, n, strings.Repeat("x", 4<<10))}
		if _, err := d.queue.AppendChannel(t.Context(), push); err != nil {
			t.Fatal(err)
		}
	}
	var got, after int64
	for more := true; more; {
		d.say(`{"type":"history","channel":"a","after":%d}`, after)
		d.do(func() {
			page := d.sock.written[len(d.sock.written)-1]
			list := *page.Messages
			got, after, more = got+int64(len(list)), list[len(list)-1].ID, page.More
			if d.sock.bytes > 40<<10 {
				t.Errorf("%d bytes in one answer", d.sock.bytes)
			}
			d.sock.bytes = 0
		})
	}
	if got != messages {
		t.Errorf("%d messages in all pages, want %d", got, messages)
	}
}

// TestMessagesKeepTheirTurn: between the end of a backlog and the word of it another message comes, which
// must not overtake those that wait.
func TestMessagesKeepTheirTurn(t *testing.T) {
	d := newDesk(t, session.Options{})
	d.backlog(true)
	d.say(`{"type":"history","channel":"a","ref":1}`)
	d.backlog(false)
	d.say(`{"type":"history","channel":"a","ref":2}`)
	d.do(d.to.Writable)
	d.settle()
	d.do(func() {
		if len(d.sock.written) != 2 || d.sock.written[0].Ref.Value != 1 || d.sock.written[1].Ref.Value != 2 {
			t.Errorf("answered: %v", d.sock.written)
		}
	})
}
