package transport

import (
	"container/list"
	"net"
	"sync"
	"sync/atomic"
)

// Gate counts the connections of the process against its limit. A process that runs out
// of descriptors cannot accept, cannot reach Redis, and stops gnet's engine.
//
// An HTTP connection is provisional until it presents an API key, or becomes a WebSocket or a link.
// When the Gate is full, Enter closes the oldest provisional connection and takes its place. A
// backend that sends its key at once therefore always gets in, and peers that only hold connections
// open displace each other: to displace a backend they would have to open as many connections as
// there are places, in the time that its first request takes to arrive.
type Gate struct {
	// Evicted is called for each connection that was closed to make room. Nil means that nothing is
	// called. It is set before the Gate is used.
	Evicted func()

	limit int64
	count atomic.Int64

	mu          sync.Mutex // guards provisional, and the element of each place
	provisional list.List  // of *place, the oldest first
}

// NewGate returns a Gate for limit connections.
func NewGate(limit int) *Gate { return &Gate{limit: int64(limit)} }

// Enter takes a place; false means there is none.
func (g *Gate) Enter() bool {
	if g.count.Add(1) <= g.limit {
		return true
	}
	g.count.Add(-1)
	return g.evict()
}

// Leave gives the place back.
func (g *Gate) Leave() { g.count.Add(-1) }

// evict closes the oldest provisional connection. Its place is the caller's from then on; false
// means that there is no such connection.
func (g *Gate) evict() bool {
	if !g.closeOldest() {
		return false
	}
	if g.Evicted != nil {
		g.Evicted()
	}
	return true
}

// closeOldest closes under the lock: a handler that takes the connection over at this moment finds
// it closed when settle returns, and not a moment later, when the Poller may have copied its
// descriptor.
func (g *Gate) closeOldest() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for oldest := g.provisional.Front(); oldest != nil; oldest = g.provisional.Front() {
		p := g.provisional.Remove(oldest).(*place)
		p.element = nil
		if !p.left.Swap(true) { // else it gives its place back at this moment
			_ = p.conn.Close()
			return true
		}
	}
	return false
}

// place is what a connection of a Listener has in a Gate. One with TLS and the connection beneath
// it share it.
type place struct {
	gate     *Gate
	conn     net.Conn // the socket itself
	reserved bool     // it is in Listener.Reserve
	left     atomic.Bool
	element  *list.Element // in gate.provisional; nil after settle; gate.mu guards it

	reads  atomic.Int64 // reads of the socket that brought something
	served int64        // reads as of the last request; belongs to the goroutine that serves it
	keyed  bool         // an API key was presented; belongs to that goroutine, too
}

// newPlace returns the place of a provisional connection. The caller has entered the gate.
func newPlace(g *Gate, c net.Conn, reserved bool) *place {
	p := &place{gate: g, conn: c, reserved: reserved}
	g.mu.Lock()
	p.element = g.provisional.PushBack(p)
	g.mu.Unlock()
	return p
}

// settle ends the provisional state: the connection is not closed to make room any more.
func (p *place) settle() {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	if p.element != nil {
		p.gate.provisional.Remove(p.element)
		p.element = nil
	}
}

// leave gives the place back, once.
func (p *place) leave() {
	if !p.left.Swap(true) {
		p.settle()
		p.gate.Leave()
	}
}

// pipelined is called at the beginning of each request. It reports whether the request arrived in
// the same read as the one before it, so that the peer cannot have waited for that answer.
func (p *place) pipelined() bool {
	reads := p.reads.Load()
	pipelined := reads == p.served
	p.served = reads
	return pipelined
}
