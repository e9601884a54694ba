package transport

import (
	"errors"
	"net"
	"net/http"
	"net/netip"

	"switchboard/broker/dialect"
	"switchboard/broker/limit"
	"switchboard/internal/proxyproto"
	"switchboard/internal/wire"
)

// ProxyHeaders are the load balancers that name the client of each connection in a header of the
// PROXY protocol. The zero value expects no headers.
type ProxyHeaders struct {
	// Networks are their networks. A connection from one of them must begin with a header, and is
	// refused without it. A header from any other address is never believed.
	Networks []netip.Prefix
	// Refused is called for each connection that is refused because of its header, with its address.
	// Nil means no call.
	Refused func(err error, address string)
}

// errForeignHeader means that a client has sent a PROXY header.
var errForeignHeader = errors.New("a PROXY header from an address that is not in the proxy_protocol setting")

// from reports whether a connection from addr must begin with a header.
func (h ProxyHeaders) from(addr net.Addr) bool {
	if len(h.Networks) == 0 {
		return false
	}
	a := addressOf(addr)
	return a.IsValid() && limit.Contains(h.Networks, a)
}

func (h ProxyHeaders) refuse(err error, address string) {
	if h.Refused != nil {
		h.Refused(err, address)
	}
}

// readProxyHeader reads the header of a load balancer and returns its length, or 0 if more bytes
// must arrive. Then the first byte after it decides.
func (c *pollerConn) readProxyHeader(buf []byte) int {
	client, n, err := proxyproto.Parse(buf)
	if err != nil {
		c.loop.poller.ProxyHeaders.refuse(err, c.RemoteAddr())
		c.refuseUnopened(buf[0], err.Error())
		return len(buf)
	}
	if n == 0 {
		return 0
	}
	c.state = sniffing
	if !client.IsValid() { // the load balancer's own connection, for instance a health check
		return n
	}
	c.setRemoteAddr(client)
	if a := c.loop.poller.limits.Addresses; a != nil {
		var refusal *limit.Refusal
		if c.address, refusal = a.Enter(client.Addr()); refusal != nil {
			c.closeUnopened(wire.CloseOverloaded, refusal.Detail, refusal.Milliseconds())
		}
	}
	return n
}

// setRemoteAddr replaces the address of the peer by the one that a proxy names. The address belongs
// to this connection alone, so it is replaced in place and takes no memory.
func (c *pollerConn) setRemoteAddr(client netip.AddrPort) {
	if tcp, ok := c.conn.RemoteAddr().(*net.TCPAddr); ok {
		*tcp = *net.TCPAddrFromAddrPort(client)
	}
}

// closeUnopened closes a connection that has no session. Its dialect is not known yet, so the
// reason is sent as JSON.
func (c *pollerConn) closeUnopened(reason wire.CloseReason, detail string, afterMS int64) {
	opening, err := c.loop.poller.dialects.Stream('{').Open(dialect.Hello{})
	if err != nil {
		c.drop()
		return
	}
	c.encoding, c.state = opening.Encoding, streaming
	c.Close(reason, detail, afterMS)
}

// refuseUnopened answers a connection whose first bytes are wrong, in HTTP if first begins a
// request.
func (c *pollerConn) refuseUnopened(first byte, detail string) {
	if isRequest(first) {
		c.answerError(http.StatusBadRequest, detail)
		return
	}
	c.closeUnopened(wire.CloseBadRequest, detail, 0)
}

// isRequest reports whether a connection that begins with this byte speaks HTTP.
func isRequest(first byte) bool { return first >= 'A' && first <= 'Z' }
