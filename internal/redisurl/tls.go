package redisurl

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"switchboard/internal/tlsconfig"
)

// setTLS makes connections use config.
func (t *target) setTLS(config func() *tls.Config) error {
	switch {
	case !t.tls:
		return errors.New("scheme: certificates are given, but the URL is without TLS: want rediss:// or the like")
	case t.query.Has("skip_verify"):
		return errors.New("query: skip_verify cannot be combined with certificates")
	}
	t.config = config
	return nil
}

// strict applies tlsconfig.Strict to config. It returns nil for nil, a connection without TLS.
func strict(config *tls.Config) *tls.Config {
	if config == nil {
		return nil
	}
	return tlsconfig.Strict(config)
}

// dialer returns a dialer that uses t.config, or nil if there is none: then go-redis dials, and
// verifies with the authorities of the system. The certificate must be valid for the host that is
// dialed. If the URL of a Cluster has one host, it must be valid for that name on all nodes.
func (t *target) dialer(timeout time.Duration) func(context.Context, string, string) (net.Conn, error) {
	if t.config == nil {
		return nil
	}
	shared := ""
	if t.kind == cluster && len(t.hosts) == 1 {
		shared, _, _ = net.SplitHostPort(t.hosts[0])
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		config := tlsconfig.Strict(t.config())
		if config.ServerName == "" {
			config.ServerName = shared
		}
		d := tls.Dialer{NetDialer: &net.Dialer{Timeout: timeout, KeepAlive: 5 * time.Minute}, Config: config}
		return d.DialContext(ctx, network, addr)
	}
}
