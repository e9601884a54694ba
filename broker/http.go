package broker

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"switchboard/broker/api"
	"switchboard/broker/fastpush"
	"switchboard/broker/limit"
	"switchboard/broker/transport"
)

// What a caller may take: from a request's first byte to the end of its body, and between two. For the head of a request,
// which may be a WebSocket's handshake, that is ConnectTimeout.
const (
	readTimeout = 30 * time.Second
	idleTimeout = 2 * time.Minute
)

// writeTimeout is how long a caller may take to read an answer. A connection that is taken over, as
// a WebSocket's, has other rules.
const writeTimeout = 30 * time.Second

// listen opens the HTTP ports and finds the address to advertise.
func (b *Broker) listen() (servers []*server, err error) {
	defer func() {
		if err != nil {
			for _, s := range servers {
				_ = s.listener.Close()
			}
		}
	}()
	h, taken := b.mainHandler()
	main, err := b.newServer("http", b.opts.HTTP, h, b.places)
	if err != nil {
		return nil, err
	}
	main.taken = taken
	servers = append(servers, main)
	b.addrs = Addrs{HTTP: main.listener.Addr().String()}
	link := main
	if b.opts.ownLinkPort() && b.peers != nil {
		mux := http.NewServeMux()
		b.probes(mux)
		mux.Handle("/peer/", b.peers.Handler())
		if link, err = b.newServer("peer", b.opts.Peer, mux, nil); err != nil {
			return servers, err
		}
		servers = append(servers, link)
		b.addrs.Peer = link.listener.Addr().String()
	}
	own, err := b.listenForOperators()
	if servers = append(servers, own...); err != nil {
		return servers, err
	}
	b.host, err = advertised(b.opts.Advertise, link.listener.Addr())
	return servers, err
}

func (b *Broker) newServer(name, addr string, h http.Handler, places *limit.Addresses) (*server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	reserve := transport.NewGate(apiReserve)
	reserve.Evicted = b.evicted
	gated := transport.Listener{Listener: l, Gate: b.gate, Reserve: reserve, Addresses: places}
	if b.opts.TLS == nil { // in plain text nobody there would understand why
		gated.Away = transport.NewGate(awayReserve)
	}
	s := &server{listener: b.encrypted(name, gated)}
	s.http = http.Server{
		Handler: transport.OneAtATime(h), ConnContext: transport.ConnContext, ConnState: transport.ConnState,
		ReadHeaderTimeout: b.opts.ConnectTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		// Before it answers, net/http reads what is left of a body, for as long as reading may
		// take.
		WriteTimeout:   readTimeout + writeTimeout,
		MaxHeaderBytes: 16 << 10, ErrorLog: b.httpWords(),
	}
	return s, nil
}

// mainHandler is the HTTP port. taken has the connections that push again and again.
func (b *Broker) mainHandler() (h http.Handler, taken *fastpush.Server) {
	mux := http.NewServeMux()
	var calls *api.API
	taken = fastpush.New(fastpush.Options{
		Paths: []string{api.PathPush, api.PathBatch}, MaxBody: api.MaxBody,
		Answer: func(path, authorization string, body, dst []byte) (int, int, []byte) {
			a := calls.Push(path, authorization, body, dst)
			return a.Status, a.RetryAfter, a.Body
		},
		Idle: idleTimeout, ReadHead: b.opts.ConnectTimeout, Read: readTimeout, Write: writeTimeout, Logger: b.opts.Logger,
	})
	o := api.Options{
		Pusher: b.pusher, Registry: b.opts.Registry, Queue: b.opts.Queue, Cluster: b, Presence: b.presence,
		Authorize: b.authorize, Namespaces: b.doors.namespaces.Load,
		MaxMessage: b.opts.MaxMessage, MaxBatch: b.opts.MaxBatch, MaxTargets: b.opts.MaxTargets,
		Notifies: b.opts.Watch != nil, WriteTimeout: writeTimeout,
		Authenticated: transport.Authenticated, CountPush: b.metrics.push, Logger: b.log,
		Rejected: b.rejected("a call is refused: "),
	}
	if !b.opts.NoFastPush {
		o.AfterPush = taken.Take
	}
	calls = api.New(o)
	mux.Handle("/v1/", calls)
	mux.Handle("/v1", calls)
	mux.HandleFunc("GET /{$}", help)
	mux.Handle("GET /ws", b.web)
	if b.opts.Probes == "" {
		b.probes(mux)
		mux.Handle("GET /metrics", b.metricsPage())
	} else if b.peers != nil && !b.opts.ownLinkPort() {
		mux.HandleFunc("GET /healthz", b.healthz) // the janitor asks where the links are
	}
	if b.peers != nil && !b.opts.ownLinkPort() {
		mux.Handle("/peer/", b.peers.Handler())
	}
	if b.opts.Keys.Open() {
		// Without keys the loopback address is the only lock, and a browser on this machine is
		// inside it: pages of other origins must not push.
		return b.opts.knownHosts(http.NewCrossOriginProtection().Handler(mux)), taken
	}
	return b.opts.knownHosts(mux), taken
}

// help answers a person who tries the port.
func help(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "This is Switchboard, a broker of client connections: /ws is for clients (WebSocket), "+
		"/v1 for backends (JSON), /healthz, /readyz and /metrics for operators; see docs/protocol.md of its source.\n")
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
