package broker

import (
	"context"
	"fmt"
	"net/http"

	"github.com/rs/zerolog"

	"switchboard/broker/limit"
	"switchboard/broker/loop"
	"switchboard/broker/transport"
)

// listeners are the ports of the broker and the limits of their connections.
type listeners struct {
	web       *transport.Web    // serves the WebSockets of the HTTP port
	poller    *transport.Poller // serves the TCP port; nil if that is off
	gate      *transport.Gate   // bounds the connections of the process
	addresses *limit.Addresses  // bounds the connections of each address

	addrs    Addrs         // constant after open is closed
	linkAddr string        // the host:port that is advertised to other servers; constant after open is closed
	open     chan struct{} // closed when all ports are open
}

func (l *listeners) loops() []*loop.Loop {
	loops := l.web.Loops()
	if l.poller != nil {
		loops = append(loops, l.poller.Loops()...)
	}
	return loops
}

// Addrs are the addresses on which a running Broker listens.
type Addrs struct{ HTTP, TCP, Peer, Probes, Pprof string }

// MarshalZerologObject implements zerolog.LogObjectMarshaler: it adds the open ports by the names
// of their settings.
func (a Addrs) MarshalZerologObject(e *zerolog.Event) {
	for _, port := range []struct{ name, addr string }{
		{"http", a.HTTP}, {"tcp", a.TCP}, {"peer", a.Peer}, {"probes", a.Probes}, {"pprof", a.Pprof},
	} {
		if port.addr != "" {
			e.Str(port.name, port.addr)
		}
	}
}

// Addrs waits until all ports are open, or ctx ends, and returns their addresses.
func (b *Broker) Addrs(ctx context.Context) (Addrs, error) {
	select {
	case <-b.listeners.open:
		return b.listeners.addrs, nil
	case <-ctx.Done():
		return Addrs{}, ctx.Err()
	}
}

// listenHTTP opens the HTTP ports and determines the address to advertise.
func (b *Broker) listenHTTP() (servers []*server, err error) {
	defer func() {
		if err != nil {
			closeAll(servers)
		}
	}()
	l := &b.listeners
	handler, fastPush := b.mainHandler()
	main, err := b.newServer("http", b.opts.Listen.HTTP, handler, l.addresses)
	if err != nil {
		return nil, err
	}
	main.fastPush = fastPush
	servers = append(servers, main)
	l.addrs.HTTP = main.addr()
	linkPort := main
	if b.opts.separateLinkPort() && b.links != nil {
		if linkPort, err = b.newServer("peer", b.opts.Links.Address, b.linkHandler(), nil); err != nil {
			return servers, err
		}
		servers = append(servers, linkPort)
		l.addrs.Peer = linkPort.addr()
	}
	operators, err := b.listenForOperators()
	if servers = append(servers, operators...); err != nil {
		return servers, err
	}
	l.linkAddr, err = advertised(b.opts.Links.Advertise, linkPort.listener.Addr())
	return servers, err
}

// listenForOperators opens the ports of the probes and of the profiles.
func (b *Broker) listenForOperators() (servers []*server, err error) {
	if addr := b.opts.Listen.Probes; addr != "" {
		mux := http.NewServeMux()
		b.handleProbes(mux)
		mux.Handle("GET /metrics", b.metricsHandler())
		s, err := b.newServer("probes", addr, mux, nil)
		if err != nil {
			return servers, err
		}
		servers = append(servers, s)
		b.listeners.addrs.Probes = s.addr()
	}
	if addr := b.opts.Listen.Pprof; addr != "" {
		s, err := b.newServer("pprof", addr, onlyThisMachine(profileHandler()), nil)
		if err != nil {
			return servers, err
		}
		s.abrupt = true
		servers = append(servers, s)
		b.listeners.addrs.Pprof = s.addr()
	}
	return servers, nil
}

// limitResets closes HTTP/2 connections that reset too many streams.
func (b *Broker) limitResets(h http.Handler) http.Handler {
	return &transport.LimitResets{Handler: h, Proxies: b.opts.Limits.Proxies, Refused: func() { b.metrics.refused("resets") }}
}

// newServer opens a port. name is the name of the port's setting. addresses bounds the connections
// of each address, nil for no bound.
func (b *Broker) newServer(name, addr string, h http.Handler, addresses *limit.Addresses) (*server, error) {
	l, err := b.opts.Listen.Open(addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	reserve := transport.NewGate(apiReserve)
	reserve.Evicted = b.connectionEvicted
	gated := transport.Listener{Listener: l, Gate: b.listeners.gate, Reserve: reserve, Addresses: addresses}
	if gated.HeaderTimeout = b.opts.Timing.Connect; name == "http" {
		gated.ProxyHeaders = b.proxyHeaders(b.opts.Limits.ProxyProtocolHTTP)
	}
	if b.opts.Listen.TLS == nil { // a TLS client could not read a plain-text refusal
		gated.Refused = transport.NewGate(refusalReserve)
	}
	s := &server{listener: b.encrypted(name, gated)}
	s.http = http.Server{
		Handler: transport.OneAtATime(b.limitResets(h)), ConnContext: transport.ConnContext, ConnState: transport.ConnState,
		ReadHeaderTimeout: b.opts.Timing.Connect, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		// net/http may read the rest of the body before it writes the response.
		WriteTimeout:   readTimeout + writeTimeout,
		MaxHeaderBytes: 16 << 10, ErrorLog: b.httpErrorLog(),
	}
	return s, nil
}
