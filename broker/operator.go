package broker

import (
	"net"
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The steps of getting ready, as /readyz names them.
const (
	stepDraining  = "draining"   // the server is going down
	stepJoin      = "join"       // the store has not been reached since the start
	stepLease     = "lease"      // it has not been reached for longer than the lease lasts
	stepBind      = "bind"       // what is held here is not bound again
	stepTokenKeys = "token_keys" // the keys of tokens have not been fetched
	stepSubscribe = "subscribe"  // and from here the message that the server sends to itself
	stepStore     = "store"
	stepOwners    = "owners"
	stepDelivery  = "delivery"
)

// unready is a step that failed, and what /readyz says of it. The zero value is none.
type unready struct {
	step, reason string
	err          error // for the log alone: it may name addresses; nil for none
}

// listenForOperators opens the ports that are for operators alone.
func (b *Broker) listenForOperators() (servers []*server, err error) {
	if b.opts.Probes != "" {
		mux := http.NewServeMux()
		b.probes(mux)
		mux.Handle("GET /metrics", b.metricsPage())
		s, err := b.newServer("probes", b.opts.Probes, mux, nil)
		if err != nil {
			return servers, err
		}
		servers = append(servers, s)
		b.addrs.Probes = s.listener.Addr().String()
	}
	if b.opts.Pprof != "" {
		s, err := b.newServer("pprof", b.opts.Pprof, thisMachineOnly(profiles()), nil)
		if err != nil {
			return servers, err
		}
		s.brief = true
		servers = append(servers, s)
		b.addrs.Pprof = s.listener.Addr().String()
	}
	return servers, nil
}

func (b *Broker) metricsPage() http.Handler {
	return promhttp.HandlerFor(b.opts.Registerer, promhttp.HandlerOpts{})
}

// probes are what load balancers and the janitor ask.
func (b *Broker) probes(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", b.healthz)
	mux.HandleFunc("GET /readyz", b.readyz)
}

func (b *Broker) healthz(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"server": b.serverID(), "version": b.opts.Version})
}

func (b *Broker) readyz(w http.ResponseWriter, _ *http.Request) {
	why := b.notReady()
	if why.step == "" {
		why = b.probe.check()
	}
	if why.step == "" {
		answer(w, http.StatusOK, map[string]any{"ready": true})
		return
	}
	if why.err != nil {
		b.log.Warn().Str("step", why.step).Err(why.err).Msg("not ready: a message from this server to itself does not come through")
	}
	w.Header().Set("Retry-After", "1")
	answer(w, http.StatusServiceUnavailable, map[string]any{"ready": false, "step": why.step, "reason": why.reason})
}

func profiles() http.Handler {
	mux := http.NewServeMux()
	for path, h := range map[string]http.HandlerFunc{
		"/debug/pprof/": pprof.Index, "/debug/pprof/cmdline": pprof.Cmdline, "/debug/pprof/profile": pprof.Profile,
		"/debug/pprof/symbol": pprof.Symbol, "/debug/pprof/trace": pprof.Trace,
	} {
		mux.Handle(path, h)
	}
	return mux
}

// thisMachineOnly serves requests that name a loopback address and were not passed on by a proxy. A
// web page whose own host name resolves to 127.0.0.1 names that host.
func thisMachineOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if !isLoopback(host) || r.Header.Get("Forwarded") != "" || r.Header.Get("X-Forwarded-For") != "" {
			http.NotFound(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}
