package transport

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"

	"switchboard/broker/limit"
)

// Listener counts the connections of an HTTP listener against the same Gate as the
// Poller's. A few more are let in, marked, so that the API answers when clients fill the process.
type Listener struct {
	net.Listener
	Gate    *Gate
	Reserve *Gate

	Addresses *limit.Addresses // nil limits none
	Away      *Gate            // of those that Addresses refuses and that may read why; nil for none
}

// Accept implements net.Listener. A connection for which there is no place at all is closed.
func (l Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address, refusal := l.enter(c)
		if refusal != nil {
			l.turnAway(c, refusal)
			continue
		}
		for _, gate := range []*Gate{l.Gate, l.Reserve} {
			if gate.Enter() {
				return &gatedConn{
					Conn: c, place: newPlace(gate, c, gate == l.Reserve), addresses: l.Addresses, address: address,
				}, nil
			}
		}
		l.Addresses.Leave(address)
		_ = c.Close()
	}
}

// enter counts the address of a connection.
func (l Listener) enter(c net.Conn) (limit.Slot, *limit.Refusal) {
	if l.Addresses == nil {
		return 0, nil
	}
	return l.Addresses.Enter(addressOf(c.RemoteAddr()))
}

// gatedConn gives its place back when it is closed.
type gatedConn struct {
	net.Conn
	*place
	addresses *limit.Addresses
	unread    []byte // read already, by whoever had the connection before
	closed    atomic.Bool
	address   limit.Slot
}

// Read implements net.Conn.
func (c *gatedConn) Read(p []byte) (int, error) {
	if len(c.unread) == 0 {
		n, err := c.Conn.Read(p)
		if n > 0 {
			c.reads.Add(1)
		}
		return n, err
	}
	n := copy(p, c.unread)
	if c.unread = c.unread[n:]; len(c.unread) == 0 {
		c.unread = nil
	}
	return n, nil
}

// Unread gives p, which it keeps, to the next calls of Read.
func (c *gatedConn) Unread(p []byte) { c.unread = p }

// Close implements net.Conn.
func (c *gatedConn) Close() error {
	if !c.closed.Swap(true) {
		c.leave()
		c.addresses.Leave(c.address)
	}
	return c.Conn.Close()
}

type placeKey struct{}

// ConnContext is an http.Server's: it remembers what place a connection has. Of one with TLS that is a copy without the
// connection: nobody may go on with the socket below it.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if encrypted, ok := c.(*tls.Conn); ok {
		if g, ok := encrypted.NetConn().(*gatedConn); ok {
			return context.WithValue(ctx, placeKey{}, &gatedConn{place: g.place})
		}
	}
	if g, ok := c.(*gatedConn); ok {
		return context.WithValue(ctx, placeKey{}, g)
	}
	return ctx
}

// placeOf is the connection of a request, or nil when it did not come through a Listener.
func placeOf(ctx context.Context) *gatedConn {
	g, _ := ctx.Value(placeKey{}).(*gatedConn)
	return g
}

// ConnState is an http.Server's: a connection that a handler has taken over keeps its place.
func ConnState(c net.Conn, state http.ConnState) {
	if encrypted, ok := c.(*tls.Conn); ok {
		c = encrypted.NetConn()
	}
	if g, ok := c.(*gatedConn); ok && state == http.StateHijacked {
		g.settle()
	}
}

// OneAtATime returns a handler that ends a connection without an API key after a request that was
// pipelined: it is answered, with Connection: close. Health checks wait for an answer before they
// ask again, so they may keep their connection. In a place of the reserve every such answer is the
// last. Authenticated lifts both.
func OneAtATime(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := placeOf(r.Context()); p != nil && !p.keyed && (p.pipelined() || p.reserved) {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// Authenticated marks the connection of a request that presented a valid API key: it keeps its
// place from then on. A handler calls it before it answers.
func Authenticated(w http.ResponseWriter, r *http.Request) {
	p := placeOf(r.Context())
	if p == nil || p.keyed {
		return
	}
	p.keyed = true
	p.settle()
	w.Header().Del("Connection")
}
