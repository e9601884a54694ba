package transport

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"switchboard/broker/limit"
	"switchboard/internal/proxyproto"
)

// Listener limits the connections of an HTTP listener with the same Gate as the Poller. When that
// Gate is full, connections take places in Reserve, so that the API still answers.
type Listener struct {
	net.Listener
	Gate    *Gate
	Reserve *Gate

	// Addresses limits the connections of each address. Nil limits none.
	Addresses *limit.Addresses
	// Refused counts the connections that Addresses has refused and that stay open until the client
	// has read the response. Nil closes them without a response.
	Refused *Gate

	// ProxyHeaders are the load balancers that send a PROXY header, before any TLS.
	ProxyHeaders ProxyHeaders
	// HeaderTimeout bounds the wait for that header.
	HeaderTimeout time.Duration
}

// Accept implements net.Listener. It closes connections for which neither gate has a place.
func (l Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.ProxyHeaders.from(c.RemoteAddr()) {
			c = &proxiedConn{Conn: c, listener: &l}
		}
		address, refusal := l.enter(c)
		if refusal != nil {
			l.refuse(c, refusal)
			continue
		}
		for _, gate := range []*Gate{l.Gate, l.Reserve} {
			if gate.Enter() {
				return &gatedConn{
					Conn: c, place: newPlace(gate, c, gate == l.Reserve), listener: &l, address: address,
				}, nil
			}
		}
		l.Addresses.Leave(address)
		_ = c.Close()
	}
}

// enter counts a connection for its address. A connection whose client a load balancer names counts
// later.
func (l Listener) enter(c net.Conn) (limit.Slot, *limit.Refusal) {
	if _, proxied := c.(*proxiedConn); proxied || l.Addresses == nil {
		return 0, nil
	}
	return l.Addresses.Enter(addressOf(c.RemoteAddr()))
}

// gatedConn gives its place back when it is closed.
type gatedConn struct {
	net.Conn
	*place
	listener *Listener
	unread   []byte // input for the next calls of Read
	closed   atomic.Bool
	address  limit.Slot
}

// Read implements net.Conn.
func (c *gatedConn) Read(p []byte) (int, error) {
	if len(c.unread) == 0 {
		n, err := c.Conn.Read(p)
		if err != nil {
			c.ended.Store(true) // before the contexts of the streams end
		}
		if n > 0 && c.reads.Add(1) == 1 && proxyproto.Begins(p[:n]) { // net/http answers it with a 400
			c.listener.ProxyHeaders.refuse(errForeignHeader, c.RemoteAddr().String())
		}
		return n, err
	}
	n := copy(p, c.unread)
	if c.unread = c.unread[n:]; len(c.unread) == 0 {
		c.unread = nil
	}
	return n, nil
}

// Unread makes the next calls of Read return p. It keeps p.
func (c *gatedConn) Unread(p []byte) { c.unread = p }

// Close implements net.Conn.
func (c *gatedConn) Close() error {
	if !c.closed.Swap(true) {
		c.leave()
		c.listener.Addresses.Leave(c.address)
	}
	return c.Conn.Close()
}

// gatedConnKey is the context key of a *gatedConn.
type gatedConnKey struct{}

// ConnContext is for http.Server.ConnContext. It stores the gatedConn of a connection in its
// context. For TLS it stores a copy that has only the place: no handler may use the TCP connection
// itself.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if encrypted, ok := c.(*tls.Conn); ok {
		if g, ok := encrypted.NetConn().(*gatedConn); ok {
			return context.WithValue(ctx, gatedConnKey{}, &gatedConn{place: g.place})
		}
	}
	if g, ok := c.(*gatedConn); ok {
		return context.WithValue(ctx, gatedConnKey{}, g)
	}
	return ctx
}

// gatedConnOf returns the connection of a request, or nil if no Listener has accepted it.
func gatedConnOf(ctx context.Context) *gatedConn {
	g, _ := ctx.Value(gatedConnKey{}).(*gatedConn)
	return g
}

// ConnState is for http.Server.ConnState. A connection that a handler has taken over keeps its
// place.
func ConnState(c net.Conn, state http.ConnState) {
	if encrypted, ok := c.(*tls.Conn); ok {
		c = encrypted.NetConn()
	}
	if g, ok := c.(*gatedConn); ok && state == http.StateHijacked {
		g.settle()
	}
}

// OneAtATime returns a handler that closes a connection after a pipelined request, unless the
// connection has presented an API key. The request is answered, with `Connection: close`. Health
// checks wait for each answer, so they keep their connection. A connection in the Reserve is closed
// after its first request. After a call of Authenticated, neither applies.
func OneAtATime(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := gatedConnOf(r.Context())
		if p != nil && !p.authenticated.Load() && (p.reserved || r.ProtoMajor == 1 && p.pipelined()) {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// Authenticated marks the connection of a request with a valid API key, which then keeps its
// place. A handler calls it before it answers.
func Authenticated(w http.ResponseWriter, r *http.Request) {
	p := gatedConnOf(r.Context())
	if p == nil || p.authenticated.Load() {
		return
	}
	p.authenticated.Store(true)
	p.settle()
	w.Header().Del("Connection")
}
