package transport

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"switchboard/broker/limit"
	"switchboard/internal/proxyproto"
)

// proxiedConn is a connection of net/http from a load balancer that sends a PROXY header. The first
// call of RemoteAddr or Read reads the header, on the goroutine of the connection.
type proxiedConn struct {
	net.Conn
	listener *Listener

	once   sync.Once      // guards the fields below, except for slot and closed
	client netip.AddrPort // the zero AddrPort if the header names none
	rest   []byte         // bytes after the header that were read with it
	err    error          // what is wrong with the header

	slot   atomic.Uint32 // limit.Slot of the client
	closed atomic.Bool
}

// readHeader reads the header, and counts the connection for its client.
func (c *proxiedConn) readHeader() {
	_ = c.SetReadDeadline(time.Now().Add(c.listener.HeaderTimeout))
	if c.err = c.parseHeader(); c.err != nil {
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	addresses := c.listener.Addresses
	if !c.client.IsValid() || addresses == nil {
		return
	}
	slot, refusal := addresses.Enter(c.client.Addr())
	if refusal != nil {
		c.err = net.ErrClosed
		if c.listener.Refused != nil { // otherwise the client could not read a plain-text refusal
			answerTooMany(c.Conn, refusal)
		}
		return
	}
	c.slot.Store(uint32(slot))
	if c.closed.Load() { // meanwhile
		c.leave()
	}
}

// parseHeader reads from the socket until the end of the header.
func (c *proxiedConn) parseHeader() error {
	var buf []byte
	piece := make([]byte, bufferSize)
	for {
		n, err := c.Conn.Read(piece)
		if n == 0 && err != nil {
			return err
		}
		buf = append(buf, piece[:n]...)
		client, length, err := proxyproto.Parse(buf)
		if err != nil {
			c.listener.ProxyHeaders.refuse(err, c.Conn.RemoteAddr().String())
			return err
		}
		if length > 0 {
			c.client, c.rest = client, buf[length:]
			return nil
		}
	}
}

// Read implements net.Conn.
func (c *proxiedConn) Read(p []byte) (int, error) {
	c.once.Do(c.readHeader)
	if c.err != nil {
		return 0, c.err
	}
	if len(c.rest) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.rest)
	if c.rest = c.rest[n:]; len(c.rest) == 0 {
		c.rest = nil
	}
	return n, nil
}

// RemoteAddr implements net.Conn. It returns the client's address if the header names it.
func (c *proxiedConn) RemoteAddr() net.Addr {
	c.once.Do(c.readHeader)
	if c.client.IsValid() {
		return net.TCPAddrFromAddrPort(c.client)
	}
	return c.Conn.RemoteAddr()
}

// Close implements net.Conn.
func (c *proxiedConn) Close() error {
	c.closed.Store(true)
	c.leave()
	return c.Conn.Close()
}

// leave gives the slot back, once.
func (c *proxiedConn) leave() { c.listener.Addresses.Leave(limit.Slot(c.slot.Swap(0))) }

// tcp returns the socket of the connection, unless input waits above it.
func (c *gatedConn) tcp() (*net.TCPConn, bool) {
	below := c.Conn
	if p, ok := below.(*proxiedConn); ok {
		if len(p.rest) > 0 {
			return nil, false
		}
		below = p.Conn
	}
	tcp, ok := below.(*net.TCPConn)
	return tcp, ok
}

// client returns the client that the PROXY header names, and the slot of the connection.
func (c *gatedConn) client() client {
	if p, ok := c.Conn.(*proxiedConn); ok {
		return client{addr: p.client, slot: limit.Slot(p.slot.Load())}
	}
	return client{slot: c.address}
}
