package transport

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"switchboard/internal/wire"
)

// corkable is a connection whose writes are counted.
type corkable struct {
	*pollerConn
	out    *memoryConn
	writes int
}

func newCorkable() *corkable {
	p := NewPoller(1, 0, Limits{}, dialects(), nil, zerolog.Nop())
	c := &corkable{out: new(memoryConn)}
	c.out.onWrite = func() { c.writes++ }
	c.pollerConn = &pollerConn{
		loop: p.loops[0], conn: c.out, state: streaming, receiver: discard{}, encoding: streamEncoding(texts{spoken.New(0)}),
	}
	return c
}

// want checks how many writes there were, and that texts went out in order.
func (c *corkable) want(t *testing.T, writes int, texts ...string) {
	t.Helper()
	var want []byte
	for _, s := range texts {
		want = append(want, spoken.Stream([]byte(s))...)
	}
	if c.writes != writes || c.out.out.String() != string(want) {
		t.Errorf("%d writes of %.80q, want %d of %.80q", c.writes, c.out.out.String(), writes, want)
	}
}

func TestCorkGathersWrites(t *testing.T) {
	c := newCorkable()
	c.Cork()
	c.Write(batchOf("a"))
	c.Cork() // calls nest
	c.Write(batchOf("b"))
	c.Uncork()
	c.Write(batchOf("c"))
	c.want(t, 0)
	c.Flush()
	c.want(t, 1, "a", "b", "c")
	c.Write(batchOf("d"))
	c.Uncork()
	c.want(t, 2, "a", "b", "c", "d")
	c.Write(batchOf("e"))
	c.want(t, 3, "a", "b", "c", "d", "e")
}

func TestCorkGathersEvents(t *testing.T) {
	c := newCorkable()
	c.Cork()
	for range 10 {
		c.Send(wire.Event{Type: wire.TypePong})
	}
	c.want(t, 0)
	c.Uncork()
	if c.writes != 1 {
		t.Errorf("%d writes, want 1", c.writes)
	}
}

// TestCorkHoldsLittleBack writes more than maxCorked bytes. The connection must notice in time
// that its socket is backed up.
func TestCorkHoldsLittleBack(t *testing.T) {
	c := newCorkable()
	kib := strings.Repeat("x", 1<<10)
	var all []string
	c.Cork()
	for range 40 {
		c.Write(batchOf(kib))
		all = append(all, kib)
		if held := len(c.loop.output.corks[c.pollerConn].held); held > maxCorked {
			t.Fatalf("%d bytes are held back", held)
		}
	}
	large := strings.Repeat("y", 2*maxCorked)
	c.Write(batchOf(large))
	all = append(all, large)
	c.Uncork()
	c.want(t, c.writes, all...)
	if c.writes < 3 || c.writes > 7 {
		t.Errorf("%d writes of 72 KiB", c.writes)
	}
	for range 10 {
		c.Send(wire.Event{Type: wire.TypeReply, Data: []byte(`"` + large + `"`)})
	}
	if n := cap(c.loop.output.scratch); n > 2*maxCorked {
		t.Errorf("%d bytes stay allocated", n)
	}
}

// TestCorksAreSeparate checks that each of several corked connections gets its own bytes, also if a
// cork is used again.
func TestCorksAreSeparate(t *testing.T) {
	c := newCorkable()
	d := &corkable{out: new(memoryConn)}
	d.out.onWrite = func() { d.writes++ }
	d.pollerConn = &pollerConn{loop: c.loop, conn: d.out, state: streaming, receiver: discard{}, encoding: c.encoding}
	for round := range 3 {
		c.Cork()
		c.Write(batchOf("a"))
		d.Cork()
		d.Write(batchOf("b"))
		c.Write(batchOf("a"))
		if c.writes != round || d.writes != round {
			t.Fatalf("%d and %d writes in round %d, while both are corked", c.writes, d.writes, round)
		}
		c.Uncork()
		d.Write(batchOf("b"))
		d.Uncork()
	}
	c.want(t, 3, "a", "a", "a", "a", "a", "a")
	d.want(t, 3, "b", "b", "b", "b", "b", "b")
	if n := len(c.loop.output.spare); n != 2 {
		t.Errorf("%d corks are kept, want 2", n)
	}
}

// TestEndWhileCorked checks that the held bytes of a connection that ends are dropped.
func TestEndWhileCorked(t *testing.T) {
	c := newCorkable()
	c.Cork()
	c.Write(batchOf("a"))
	c.onClose() // the next corked connection must not get these bytes
	d := &pollerConn{loop: c.loop, conn: new(memoryConn), state: streaming, receiver: discard{}, encoding: c.encoding}
	d.Cork()
	d.Write(batchOf("b"))
	d.Uncork()
	if got := d.conn.(*memoryConn).out.String(); got != string(spoken.Stream([]byte("b"))) {
		t.Errorf("the next connection is sent %q", got)
	}
	c.Uncork()
	c.want(t, 0)
}

// TestBrokenWhileCorked checks that a connection that the peer breaks gets its held bytes before
// the reason.
func TestBrokenWhileCorked(t *testing.T) {
	for name, end := range map[string]func(*pollerConn){
		"stream":    func(c *pollerConn) { c.broken("no length") },
		"websocket": func(c *pollerConn) { c.fail(statusProtocol, "no mask") },
	} {
		c := newCorkable()
		c.loop.poller.lingerTime = time.Minute
		c.Cork()
		c.Write(batchOf("a"))
		end(c.pollerConn)
		c.Uncork()
		if first := spoken.Stream([]byte("a")); !bytes.HasPrefix(c.out.out.Bytes(), first) || c.out.out.Len() == len(first) {
			t.Errorf("%s: the connection is sent %q, want %q first, then the reason", name, c.out.out.String(), first)
		}
	}
}

// TestThePeerIsGoneWithinFlush: a write that fails ends the connection within the call.
func TestThePeerIsGoneWithinFlush(t *testing.T) {
	c := newCorkable()
	c.out.onWrite = c.onClose
	c.Cork()
	c.Write(batchOf("a"))
	c.Uncork()
	if o := &c.loop.output; c.corked || len(o.corks) != 0 {
		t.Errorf("the connection is still corked: %+v", o)
	}
	c.Write(batchOf("b"))
}
