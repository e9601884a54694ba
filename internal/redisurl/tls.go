package redisurl

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"switchboard/internal/tlsconfig"
)

// setTLS has connections made with config.
func (t *target) setTLS(config func() *tls.Config) error {
	switch {
	case !t.tls:
		return errors.New("scheme: there are certificates for it and it is in the clear, want rediss:// or the like")
	case t.query.Has("skip_verify"):
		return errors.New("query: skip_verify makes no sense beside certificates")
	}
	t.config = config
	return nil
}

// strict returns what tlsconfig.Strict makes of the library's configuration. Nil, for a connection
// in the clear, stays nil.
func strict(config *tls.Config) *tls.Config {
	if config == nil {
		return nil
	}
	return tlsconfig.Strict(config)
}

// dialer is nil where the library knows how to dial: then it verifies by the system's authorities. A host is compared with its
// own certificate; in a Cluster of one host in the URL that is the name that all nodes share.
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
