//go:build long

package e2e

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A linkState is what a flakyProxy does with connections.
type linkState int32

const (
	linkUp      linkState = iota
	linkRefuses           // ends connections, and new ones at once
	linkSilent            // ends connections; new ones are accepted, and hear nothing
)

// A flakyProxy is the network between clients and one broker.
type flakyProxy struct {
	net.Listener
	upstream string
	state    atomic.Int32

	mu       sync.Mutex // guards the fields below
	conns    map[net.Conn]bool
	attempts []time.Time // of all connections
	reached  []time.Time // of those that were forwarded to the broker
}

func newFlakyProxy(upstream string) (*flakyProxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &flakyProxy{Listener: l, upstream: upstream, conns: make(map[net.Conn]bool)}
	go p.serve()
	return p, nil
}

// set changes the state. It resets all connections, also when the link is up again: a client must
// not profit from a connection that began during an outage.
func (p *flakyProxy) set(s linkState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if linkState(p.state.Swap(int32(s))) == linkSilent {
		return // what hears nothing goes on to hear nothing
	}
	for c := range p.conns {
		reset(c)
	}
}

func (p *flakyProxy) serve() {
	for {
		c, err := p.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.attempts = append(p.attempts, time.Now())
		p.conns[c] = true
		p.mu.Unlock()
		go p.forward(c)
	}
}

func (p *flakyProxy) forward(c net.Conn) {
	defer func() {
		p.mu.Lock()
		delete(p.conns, c)
		p.mu.Unlock()
		reset(c)
	}()
	switch linkState(p.state.Load()) {
	case linkRefuses:
		return
	case linkSilent:
		_, _ = io.Copy(io.Discard, c)
		return
	}
	up, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.reached = append(p.reached, time.Now())
	p.mu.Unlock()
	go func() {
		_, _ = io.Copy(c, up)
		reset(c)
	}()
	_, _ = io.Copy(up, c)
	_ = up.Close()
}

// reset ends a connection with RST.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// stop ends the listener and all connections.
func (p *flakyProxy) stop() {
	_ = p.Close()
	p.set(linkRefuses)
}
