package sweep

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"switchboard/cmd/internal/setup"
)

// readyTimeout bounds the ping of Redis for /readyz.
const readyTimeout = time.Second

// probes serves /healthz, /readyz and /metrics.
type probes struct {
	listener net.Listener // nil for none
	http     http.Server
}

// listen opens the port. An empty address means none.
func listen(addr string, redis *setup.Redis, metrics *prometheus.Registry, log zerolog.Logger) (*probes, error) {
	if addr == "" {
		return &probes{}, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, `{"janitor":true}`)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if err := redis.Ping(ctx); err != nil {
			log.Warn().Str("step", "store").Err(err).Msg("not ready: Redis does not answer")
			answer(w, http.StatusServiceUnavailable, `{"ready":false,"reason":"Redis does not answer","step":"store"}`)
			return
		}
		answer(w, http.StatusOK, `{"ready":true}`)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	return &probes{l, http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute,
	}}, nil
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, body)
}

func (p *probes) addr() string {
	if p.listener == nil {
		return ""
	}
	return p.listener.Addr().String()
}

// serve answers until ctx ends. It does not wait for calls under way, since probes are not
// important then.
func (p *probes) serve(ctx context.Context) error {
	if p.listener == nil {
		return nil
	}
	defer context.AfterFunc(ctx, func() { _ = p.http.Close() })()
	if err := p.http.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("http: %w", err)
	}
	return nil
}
