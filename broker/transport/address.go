package transport

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"switchboard/broker/limit"
	"switchboard/internal/linger"
)

// A connection counts for its address from Accept to its end. A connection from a proxy counts only
// from its request for a WebSocket or a stream, for the address that the proxy names in it.

// addrPortOf returns the IP address of a with its port, or the zero AddrPort if it has none.
func addrPortOf(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	addr := tcp.AddrPort()
	return netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
}

// addressOf returns the IP address of a, or the zero Addr if it has none.
func addressOf(a net.Addr) netip.Addr { return addrPortOf(a).Addr() }

// client is the client of a connection, if a proxy names it.
type client struct {
	addr netip.AddrPort // the zero AddrPort if no proxy names it; the port is 0 if it is not known
	slot limit.Slot     // of addr
}

// remoteAddr returns the host:port of the client of a request.
func (c client) remoteAddr(r *http.Request) string {
	if c.addr.IsValid() {
		return c.addr.String()
	}
	return r.RemoteAddr
}

// enterForwarded returns the client that a proxy names in a request, and counts the connection for
// its address. The caller gives the slot back when the connection ends.
func (l Limits) enterForwarded(r *http.Request) (client, *limit.Refusal) {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return l.enterAs(peer.Addr(), r.Header.Values("X-Forwarded-For"))
}

// enterAs is enterForwarded for a handshake from peer with these values of X-Forwarded-For.
func (l Limits) enterAs(peer netip.Addr, values []string) (client, *limit.Refusal) {
	addr := limit.Forwarded(l.Proxies, peer, values)
	if !addr.IsValid() {
		return client{}, nil
	}
	slot, refusal := l.Addresses.Enter(addr)
	return client{addr: netip.AddrPortFrom(addr.Unmap().WithZone(""), 0), slot: slot}, refusal
}

// tooMany answers a request whose address is over its limit.
func tooMany(rw http.ResponseWriter, r *limit.Refusal) {
	rw.Header().Set("Retry-After", strconv.Itoa(r.Seconds()))
	http.Error(rw, r.Detail, http.StatusTooManyRequests)
}

// refuse closes a connection. If Refused has room, it first sends the reason, and the connection
// lingers.
func (l Listener) refuse(c net.Conn, r *limit.Refusal) {
	if l.Refused == nil || !l.Refused.Enter() {
		_ = c.Close()
		return
	}
	go func() {
		defer l.Refused.Leave()
		defer c.Close()
		answerTooMany(c, r)
	}()
}

// answerTooMany sends the reason, and waits until the client ends the connection, within the bounds
// of package linger.
func answerTooMany(c net.Conn, r *limit.Refusal) {
	_ = c.SetDeadline(time.Now().Add(linger.Time))
	_, err := fmt.Fprintf(c, "HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain\r\nRetry-After: %d\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s\n",
		r.Seconds(), len(r.Detail)+1, r.Detail)
	if half, ok := c.(interface{ CloseWrite() error }); ok && err == nil && half.CloseWrite() == nil {
		linger.Drop(c)
	}
}
