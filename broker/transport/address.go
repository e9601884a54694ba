package transport

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"switchboard/broker/limit"
)

// A connection counts for its address from Accept to its end. A connection from a proxy counts only
// from its request for a WebSocket or a stream, for the address that the proxy names in it.

// addressOf returns the IP address of a, or the zero Addr if it has none.
func addressOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr()
	}
	return netip.Addr{}
}

// enterForwarded counts the connection of a request from a proxy for the address that the proxy
// names. It returns 0 for all other requests. The caller gives the slot back when the connection
// ends.
func (l Limits) enterForwarded(r *http.Request) (limit.Slot, *limit.Refusal) {
	if l.Addresses == nil {
		return 0, nil
	}
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return l.Addresses.Enter(l.Addresses.Forwarded(peer.Addr(), r.Header.Values("X-Forwarded-For")))
}

// tooMany answers a request whose address is over its limit.
func tooMany(rw http.ResponseWriter, r *limit.Refusal) {
	rw.Header().Set("Retry-After", strconv.Itoa(r.Seconds()))
	http.Error(rw, r.Detail, http.StatusTooManyRequests)
}

// refuse closes a connection. If Refused has room, it first sends the reason and waits until the
// client ends the connection: closing with unread input sends RST, and the client may lose the
// response.
func (l Listener) refuse(c net.Conn, r *limit.Refusal) {
	if l.Refused == nil || !l.Refused.Enter() {
		_ = c.Close()
		return
	}
	go func() {
		defer l.Refused.Leave()
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(lingerTime))
		_, err := fmt.Fprintf(c, "HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain\r\nRetry-After: %d\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s\n",
			r.Seconds(), len(r.Detail)+1, r.Detail)
		if half, ok := c.(interface{ CloseWrite() error }); ok && err == nil && half.CloseWrite() == nil {
			_, _ = io.Copy(io.Discard, c)
		}
	}()
}
