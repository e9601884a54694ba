package broker

import (
	"net"
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// handleProbes registers the probes for load balancers and the janitor.
func (b *Broker) handleProbes(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", b.healthz)
	mux.HandleFunc("GET /readyz", b.readyz)
}

func (b *Broker) metricsHandler() http.Handler {
	return promhttp.HandlerFor(b.opts.Registerer, promhttp.HandlerOpts{})
}

func (b *Broker) healthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"server": b.ID(), "version": b.opts.Version})
}

func (b *Broker) readyz(w http.ResponseWriter, _ *http.Request) {
	failure := b.ready.Full()
	if failure.Step == "" {
		writeJSON(w, http.StatusOK, map[string]any{"ready": true})
		return
	}
	if failure.Err != nil {
		b.log.Warn().Str("step", failure.Step).Err(failure.Err).Msg("not ready: a test message from this server to itself was not delivered")
	}
	w.Header().Set("Retry-After", "1")
	writeJSON(w, http.StatusServiceUnavailable, map[string]any{"ready": false, "step": failure.Step, "reason": failure.Reason})
}

func profileHandler() http.Handler {
	mux := http.NewServeMux()
	for path, h := range map[string]http.HandlerFunc{
		"/debug/pprof/": pprof.Index, "/debug/pprof/cmdline": pprof.Cmdline, "/debug/pprof/profile": pprof.Profile,
		"/debug/pprof/symbol": pprof.Symbol, "/debug/pprof/trace": pprof.Trace,
	} {
		mux.Handle(path, h)
	}
	return mux
}

// onlyThisMachine serves requests for a loopback host that no proxy forwarded. This excludes a web
// page whose own host name resolves to 127.0.0.1: its requests have that host name.
func onlyThisMachine(h http.Handler) http.Handler {
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
