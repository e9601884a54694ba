package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"switchboard/broker/dialect/sse"
	"switchboard/broker/limit"
	"switchboard/broker/transport"
	"switchboard/internal/wire"
)

const (
	// maxAckBody is the maximum size of the body of an acknowledgement, in bytes. It has an event id.
	maxAckBody = 8 << 10
	// ackTimeout bounds an acknowledgement, with its hook and its store calls.
	ackTimeout = 10 * time.Second
	// preflightAge is how long a browser remembers the answer to a preflight request, in seconds.
	preflightAge = "7200"
)

// handleStreams adds /sse: Server-Sent Events.
func (b *Broker) handleStreams(mux *http.ServeMux) {
	mux.Handle("GET /sse", b.forOrigins(b.listeners.web.ServeStream))
	mux.Handle("POST /sse", b.forOrigins(b.acknowledge))
	mux.Handle("OPTIONS /sse", b.forOrigins(preflight))
}

// forOrigins lets pages of the configured origins use h, as the CORS protocol says (Fetch Standard
// §3.3), and refuses all other pages.
func (b *Broker) forOrigins(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Origin")
		page := transport.PageOf(r)
		page.Silent = page.Silent && r.Header.Get("Authorization") == "" && r.URL.Query().Get("token") == ""
		if refusal := b.refusePage(page); refusal != "" {
			refuseStream(w, wire.Errorf(wire.Forbidden, "%s", refusal))
			return
		}
		if page.Origin != "" {
			w.Header().Set("Access-Control-Allow-Origin", page.Origin)
		}
		h(w, r)
	})
}

// preflight answers a CORS preflight request: it lists the methods and headers that a page of
// another origin may send.
func preflight(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	h.Set("Access-Control-Allow-Headers", "Authorization, Cache-Control, Content-Type, Last-Event-ID")
	h.Set("Access-Control-Max-Age", preflightAge)
	w.WriteHeader(http.StatusNoContent)
}

// acknowledge removes messages from the client's queue, up to the position in an event id. The id
// is the body, or it is where GET /sse expects it: the header Last-Event-ID or the query.
//
// Each call verifies a token, may call the connect hook and uses the store, and a client needs no
// connection of its own for it. So the message rate of a connection bounds the calls of an address.
func (b *Broker) acknowledge(w http.ResponseWriter, r *http.Request) {
	if wait := b.ackRate.Take(limit.Network(b.addressOf(r)).String()); wait > 0 {
		b.metrics.refused("ack_rate")
		refuseStream(w, &wire.Error{
			Code: wire.RateLimited, After: wait,
			Message: fmt.Sprintf("more than %d acknowledgements a second from this address (limits.message_rate)", b.opts.Limits.MessageRate),
		})
		return
	}
	ctx, end, err := b.beginRead(r)
	if err != nil {
		refuseStream(w, err)
		return
	}
	defer end()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAckBody))
	if err != nil {
		refuseStream(w, wire.Errorf(wire.TooLarge, "the body has more than %d bytes, or it broke off", maxAckBody))
		return
	}
	if id := bytes.TrimSpace(body); len(id) > 0 {
		r.Header.Set("Last-Event-ID", string(id))
	}
	q, err := sse.ParseQuery(r.URL, r.Header)
	if err == nil && q.Last == nil {
		err = wire.Errorf(wire.BadRequest, "Last-Event-ID: missing")
	}
	if err == nil && q.Last.Inbox > 0 {
		ctx, cancel := context.WithTimeout(ctx, ackTimeout)
		defer cancel()
		err = b.sessions.Acknowledge(ctx, q.Connect, r.RemoteAddr, q.Last.Client, q.Last.Inbox)
	}
	if err != nil {
		refuseStream(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// addressOf returns the address of the client that made a request: the one that a trusted proxy
// names, or else the one of the connection. It is the zero Addr if it is not known.
func (b *Broker) addressOf(r *http.Request) netip.Addr {
	return b.peerOf(r).Addr().Unmap().WithZone("")
}

// peerOf is addressOf with the port of the connection. The port is 0 if a proxy names the address.
func (b *Broker) peerOf(r *http.Request) netip.AddrPort {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	if addr := limit.Forwarded(b.opts.Limits.Proxies, peer.Addr(), r.Header.Values("X-Forwarded-For")); addr.IsValid() {
		return netip.AddrPortFrom(addr, 0)
	}
	return peer
}

// beginRead charges a call without an API key for what it reads from the store, see
// session.Manager.BeginRead.
func (b *Broker) beginRead(r *http.Request) (ctx context.Context, end func(), err error) {
	return b.sessions.BeginRead(r.Context(), b.peerOf(r).String())
}

// refuseStream answers with an error, as the HTTP API does.
func refuseStream(w http.ResponseWriter, err error) {
	refusal, ok := errors.AsType[*wire.Error](err)
	if !ok {
		refusal = wire.Errorf(wire.BadRequest, "%s", err.Error())
	}
	status := refusal.Code.Status()
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(limit.Seconds(refusal.After)))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(sse.RefusalBody(refusal))
}
