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
// Some of its places may be held by strangers: HTTP connections that have neither presented an API
// key nor become a WebSocket or a link. When the Gate is full, the oldest stranger gives way to the
// newcomer. A peer that proves itself at once therefore always gets in, and peers that only hold
// connections open displace each other: to displace a backend they would have to open as many
// connections as there are places in the time that its first request takes to arrive.
type Gate struct {
	// Evicted is called for each stranger that gave way. Nil means that it is not counted. It is set
	// before the Gate is used.
	Evicted func()

	limit int64
	count atomic.Int64

	mu        sync.Mutex // guards strangers, and the mark of each place
	strangers list.List  // of *place, the oldest first
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

// evict closes the oldest stranger, whose place is the caller's from then on; false means that there
// is none.
func (g *Gate) evict() bool {
	if !g.closeOldest() {
		return false
	}
	if g.Evicted != nil {
		g.Evicted()
	}
	return true
}

// closeOldest closes under the lock: a handler that takes the connection over at this moment finds it
// closed when settle returns, and not a moment later, when the Poller may have copied its descriptor.
func (g *Gate) closeOldest() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for oldest := g.strangers.Front(); oldest != nil; oldest = g.strangers.Front() {
		p := g.strangers.Remove(oldest).(*place)
		p.stranger = nil
		if !p.left.Swap(true) { // else it gives its place back at this moment
			_ = p.conn.Close()
			return true
		}
	}
	return false
}

// place is what a connection of a Listener has in a Gate. One with TLS and the connection beneath it
// share it.
type place struct {
	gate     *Gate
	conn     net.Conn // the socket itself
	reserved bool     // of the gate for which clients are turned away
	left     atomic.Bool
	stranger *list.Element // in gate.strangers, which guards it; nil after settle

	reads  atomic.Int64 // reads of the socket that brought something
	served int64        // reads, as of the last request; belongs to the goroutine that serves it
	known  bool         // an API key was presented; belongs to that goroutine, too
}

// newPlace makes the place of a stranger. The caller has entered the gate.
func newPlace(g *Gate, c net.Conn, reserved bool) *place {
	p := &place{gate: g, conn: c, reserved: reserved}
	g.mu.Lock()
	p.stranger = g.strangers.PushBack(p)
	g.mu.Unlock()
	return p
}

// settle means that the connection does not give way any more.
func (p *place) settle() {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	if p.stranger != nil {
		p.gate.strangers.Remove(p.stranger)
		p.stranger = nil
	}
}

// leave gives the place back, once.
func (p *place) leave() {
	if !p.left.Swap(true) {
		p.settle()
		p.gate.Leave()
	}
}

// crowds is called at the beginning of each request. It says whether the request came together with
// the one before it: then the peer does not wait for answers.
func (p *place) crowds() bool {
	reads := p.reads.Load()
	crowds := reads == p.served
	p.served = reads
	return crowds
}
