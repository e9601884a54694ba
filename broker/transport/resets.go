package transport

import (
	"net/http"
	"net/netip"

	"switchboard/broker/limit"
)

// resetRate bounds the streams of an HTTP/2 connection that the client resets before they are
// answered. A browser resets some when its user leaves a page.
var resetRate = limit.New(10, 100)

// LimitResets closes an HTTP/2 connection whose client opens streams and resets them, over and over
// ("rapid reset", CVE-2023-44487). Such a client need not read answers, and stays below the limit
// of concurrent streams, so that nothing slows it down: net/http served 22,000 streams a second.
//
// A stream counts if the client resets it before its handler has returned or has flushed an answer.
// Connections with an API key are exempt, and so are those from proxies, which carry the streams of
// many clients.
type LimitResets struct {
	Handler http.Handler
	Proxies []netip.Prefix
	Refused func() // called for each connection that is closed

	rate limit.Rate // zero means resetRate
}

// ServeHTTP implements http.Handler.
func (l *LimitResets) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	p := gatedConnOf(r.Context())
	if p == nil || r.ProtoMajor != 2 {
		l.Handler.ServeHTTP(rw, r)
		return
	}
	w := &answer{ResponseWriter: rw}
	l.Handler.ServeHTTP(w, r)
	if r.Context().Err() == nil || p.ended.Load() || w.begun || p.authenticated.Load() || l.isProxy(r.RemoteAddr) {
		return
	}
	if p.resetBucket(l.rate).Take(1) > 0 && !p.refused.Swap(true) {
		l.Refused()
		_ = p.conn.Close()
	}
}

// isProxy reports whether the peer is one of Proxies.
func (l *LimitResets) isProxy(remoteAddr string) bool {
	peer, err := netip.ParseAddrPort(remoteAddr)
	return err == nil && limit.Contains(l.Proxies, peer.Addr())
}

// resetBucket returns the bucket of the connection's resets. The first call makes it.
func (p *place) resetBucket(rate limit.Rate) *limit.SharedBucket {
	if b := p.resets.Load(); b != nil {
		return b
	}
	if rate.None() {
		rate = resetRate
	}
	p.resets.CompareAndSwap(nil, limit.NewSharedBucket(rate))
	return p.resets.Load()
}

// answer notes when a response begins to be sent.
type answer struct {
	http.ResponseWriter
	begun bool
}

// FlushError is called by [http.ResponseController.Flush].
func (a *answer) FlushError() error {
	a.begun = true
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Unwrap is called by [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
