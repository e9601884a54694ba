package transport

import (
	"container/list"
	"net"
	"sync"
	"sync/atomic"

	"switchboard/broker/limit"
)

// Gate limits the number of connections of the process. A process without free descriptors cannot
// accept connections and cannot reach Redis, and gnet's engine stops.
//
// An HTTP connection is provisional until it presents an API key, or becomes a WebSocket, a stream
// or a link between servers. When the Gate is full, Enter closes the oldest provisional connection
// and takes its place. So a backend that sends its key at once always gets in, and clients that
// only hold connections open displace each other. To displace a backend they would have to open
// Keep connections before its first request arrives.
type Gate struct {
	// Keep is the number of provisional connections that Enter leaves open: while there are fewer than
	// that, it takes no place, since a new connection may be that of a backend. It is set before the
	// Gate is used. Zero means one, that is, any provisional connection may be closed.
	Keep int
	// Evicted is called for each connection that was closed to make room, if it is not nil. It is
	// set before the Gate is used.
	Evicted func()

	limit int64
	count atomic.Int64

	mu          sync.Mutex // guards provisional, and the element of each place
	provisional list.List  // of *place, the oldest first
}

// NewGate returns a Gate for limit connections.
func NewGate(limit int) *Gate { return &Gate{limit: int64(limit)} }

// Enter takes a place. It returns false if there is none.
func (g *Gate) Enter() bool {
	if g.count.Add(1) <= g.limit {
		return true
	}
	g.count.Add(-1)
	return g.evict()
}

// Leave gives the place back.
func (g *Gate) Leave() { g.count.Add(-1) }

// evict closes the oldest provisional connection and gives its place to the caller. It returns
// false if there are fewer than Keep.
func (g *Gate) evict() bool {
	if !g.closeOldest() {
		return false
	}
	if g.Evicted != nil {
		g.Evicted()
	}
	return true
}

// closeOldest closes the oldest provisional connection. It does so under the lock: if a handler
// takes the connection over at the same time, the connection is closed before settle returns.
// Otherwise the Poller could copy its descriptor before it is closed.
func (g *Gate) closeOldest() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.provisional.Len() >= max(1, g.Keep) {
		p := g.provisional.Remove(g.provisional.Front()).(*place)
		p.element = nil
		if !p.left.Swap(true) { // otherwise leave is giving the place back
			_ = p.conn.Close()
			return true
		}
	}
	return false
}

// place is the place of a Listener's connection in a Gate. A TLS connection and the TCP connection
// below it share one place.
type place struct {
	gate     *Gate
	conn     net.Conn      // the TCP connection
	reserved bool          // the gate is Listener.Reserve
	left     atomic.Bool   // the place was given back, or given to another connection
	element  *list.Element // in gate.provisional, nil after settle; guarded by gate.mu

	reads         atomic.Int64 // reads of the connection that returned data
	readsServed   atomic.Int64 // reads at the start of the last request
	authenticated atomic.Bool  // a request has presented an API key
	ended         atomic.Bool  // a read has failed

	resets  atomic.Pointer[limit.SharedBucket] // of LimitResets; nil before the first reset
	refused atomic.Bool                        // LimitResets has closed the connection
}

// newPlace returns the place of a provisional connection. The caller has entered the gate.
func newPlace(g *Gate, c net.Conn, reserved bool) *place {
	p := &place{gate: g, conn: c, reserved: reserved}
	g.mu.Lock()
	p.element = g.provisional.PushBack(p)
	g.mu.Unlock()
	return p
}

// settle ends the provisional state: the Gate no longer closes the connection to make room.
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

// pipelined is called at the start of each request. It reports whether the request arrived in the
// same read as the one before it. If so, the client has not waited for the earlier answer.
func (p *place) pipelined() bool {
	reads := p.reads.Load()
	return p.readsServed.Swap(reads) == reads
}
