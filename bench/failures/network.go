package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// network carries connections inside this process. A process may not have as many sockets as the
// links of 200 brokers need, which are 39,800.
type network struct {
	mu        sync.Mutex // guards the fields below
	listeners map[string]*listener
	ports     int // given out
}

func newNetwork() *network { return &network{listeners: map[string]*listener{}} }

// firstPort is the first port that is given out. The ports do not exist outside of the network.
const firstPort = 10_000

// address returns an address that no listener has had.
func (n *network) address() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ports++
	return fmt.Sprintf("127.0.%d.1:%d", n.ports/10_000, firstPort+n.ports%10_000)
}

// listen implements broker.ListenOptions.Open.
func (n *network) listen(addr string) (net.Listener, error) {
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, err
	}
	l := &listener{network: n, addr: tcp, conns: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[addr] != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, syscall.EADDRINUSE)
	}
	n.listeners[addr] = l
	return l, nil
}

// dial implements broker.LinkOptions.Dial.
func (n *network) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[addr]
	n.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("dial %s: %w", addr, syscall.ECONNREFUSED)
	}
	ours, theirs := net.Pipe()
	select {
	case l.conns <- &pipe{theirs, l.addr}:
		return &pipe{ours, l.addr}, nil
	case <-l.closed:
		return nil, fmt.Errorf("dial %s: %w", addr, syscall.ECONNREFUSED)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// listener is a listener of a network.
type listener struct {
	network *network
	addr    net.Addr
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.network.mu.Lock()
		defer l.network.mu.Unlock()
		delete(l.network.listeners, l.addr.String())
	})
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.addr }

// pipe is one end of a connection. Both ends have the address of the listener.
type pipe struct {
	net.Conn
	addr net.Addr
}

// LocalAddr implements net.Conn.
func (p *pipe) LocalAddr() net.Addr { return p.addr }

// RemoteAddr implements net.Conn.
func (p *pipe) RemoteAddr() net.Addr { return p.addr }
