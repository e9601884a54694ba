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

// keepAlive finds a dead connection after 45 s, as the dialer of go-redis does. It also keeps the
// connection in the tables of load balancers and NAT.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 5 * time.Second, Count: 3}

// dialer returns a dialer that uses t.config, or fromURL if there is none. fromURL is nil for a
// connection without TLS. The certificate must be valid for the host that is dialed. If the URL of
// a Cluster has one host, it must be valid for that name on all nodes.
//
// A connection whose command timed out is closed. What it has not sent by then is discarded, or a
// link that lost its packets would bring the command to Redis much later, when the caller has done
// something else.
func (t *target) dialer(timeout time.Duration, fromURL *tls.Config) func(context.Context, string, string) (net.Conn, error) {
	shared := ""
	if t.kind == cluster && len(t.hosts) == 1 {
		shared, _, _ = net.SplitHostPort(t.hosts[0])
	}
	plain := &net.Dialer{Timeout: timeout, KeepAliveConfig: keepAlive}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		config := fromURL
		if t.config != nil {
			if config = tlsconfig.Strict(t.config()); config.ServerName == "" {
				config.ServerName = shared
			}
		}
		dial := plain.DialContext
		if config != nil {
			dial = (&tls.Dialer{NetDialer: plain, Config: config}).DialContext
		}
		conn, err := dial(ctx, network, addr)
		if err == nil {
			discardUnsent(conn)
		}
		return conn, err
	}
}

// discardUnsent makes the close of conn discard what was not sent.
func discardUnsent(conn net.Conn) {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails only on a closed connection
	}
}
