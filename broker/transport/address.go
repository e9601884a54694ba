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

// A connection counts for its address from the moment that it is accepted, with its handshake before it and whatever it
// does with it. One from a proxy counts for whom the proxy names in its WebSocket handshake, and until then for nobody.

// addressOf is the IP address of a; the zero Addr where it has none.
func addressOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr()
	}
	return netip.Addr{}
}

// enterForwarded counts a request that a proxy passes on, until its connection ends; 0 for all others.
func (l Limits) enterForwarded(r *http.Request) (limit.Slot, *limit.Refusal) {
	if l.Addresses == nil {
		return 0, nil
	}
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return l.Addresses.Enter(l.Addresses.Forwarded(peer.Addr(), r.Header.Values("X-Forwarded-For")))
}

// tooMany refuses a request over net/http.
func tooMany(rw http.ResponseWriter, r *limit.Refusal) {
	rw.Header().Set("Retry-After", strconv.Itoa(r.Seconds()))
	http.Error(rw, r.Detail, http.StatusTooManyRequests)
}

// turnAway closes a connection, and tells why where it has a place for that: to close it with bytes of the peer unread
// would take the answer from it.
func (l Listener) turnAway(c net.Conn, r *limit.Refusal) {
	if l.Away == nil || !l.Away.Enter() {
		_ = c.Close()
		return
	}
	go func() {
		defer l.Away.Leave()
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(lingerTime))
		_, err := fmt.Fprintf(c, "HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain\r\nRetry-After: %d\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s\n",
			r.Seconds(), len(r.Detail)+1, r.Detail)
		if half, ok := c.(interface{ CloseWrite() error }); ok && err == nil && half.CloseWrite() == nil {
			_, _ = io.Copy(io.Discard, c)
		}
	}()
}
