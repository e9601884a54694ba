package redisurl

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	timeout  = 2 * time.Second // of dialling, of one read and of one write, unless the URL sets it
	poolSize = 32              // per node: a redispipe.Pipe has at most 8 plain and 8 durable round trips in flight

	// reloadInterval is the interval at which a Cluster client reloads the owners of the slots. A
	// dead master cannot redirect to its successor, so the client would use it until the next
	// reload, by default a minute.
	reloadInterval = time.Second
)

// Open makes a client for the Redis at rawURL, and a Watch of its connections. It does not connect:
// [Watch.Begin] or the first command does. The caller closes the client. The error is one line,
// names the invalid part of the URL, and never contains user or password.
//
// The client respects the deadlines of contexts. It does not retry (MaxRetries -1), since an
// interrupted script may have run. A Cluster client still retries a pipeline after a connection
// error, unless it has a command whose NoRetry is true.
func Open(rawURL string) (redis.UniversalClient, *Watch, error) { return OpenTLS(rawURL, nil) }

// OpenTLS is Open with certificates. It calls config for every new connection, and uses the result
// instead of the TLS parameters of the URL. Nil means the authorities of the system, and no client
// certificate.
func OpenTLS(rawURL string, config func() *tls.Config) (redis.UniversalClient, *Watch, error) {
	t, err := parse(rawURL)
	if err == nil && config != nil {
		err = t.setTLS(config)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("bad Redis URL: %w", err)
	}
	w := newWatch()
	switch t.kind {
	case sentinel:
		w.client, err = t.openSentinel(w.onConnect)
	case cluster:
		w.client, err = t.openCluster(w.onConnect)
	default:
		w.client, err = t.openSingle(w.onConnect)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("bad Redis URL: %s", strings.TrimPrefix(err.Error(), "redis: "))
	}
	return w.client, w, nil
}

// Redact returns rawURL without user, password and query, for logs.
func Redact(rawURL string) string {
	t, err := parse(rawURL)
	if err != nil {
		return "(malformed Redis URL)"
	}
	scheme, _, _ := strings.Cut(rawURL, "://")
	return strings.TrimSuffix(scheme+"://"+strings.Join(t.hosts, ",")+"/"+t.path, "/")
}

type connectHook = func(context.Context, *redis.Conn) error

func (t *target) openSingle(hook connectHook) (redis.UniversalClient, error) {
	o, err := redis.ParseURL(t.goRedisURL())
	if err != nil {
		return nil, err
	}
	o.Username, o.Password, o.OnConnect, o.TLSConfig = t.user, t.password, hook, strict(o.TLSConfig)
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	o.MaintNotificationsConfig = withoutNotifications()
	setSizes(&o.PoolSize, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	o.Dialer = t.dialer(o.DialTimeout, o.TLSConfig)
	return redis.NewClient(o), nil
}

func (t *target) openSentinel(hook connectHook) (redis.UniversalClient, error) {
	o, err := redis.ParseFailoverURL(t.goRedisURL())
	if err != nil {
		return nil, err
	}
	o.Username, o.Password, o.OnConnect, o.TLSConfig = t.user, t.password, hook, strict(o.TLSConfig)
	o.SentinelUsername, o.SentinelPassword = t.sentinelUser, t.sentinelPassword
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	verifyEachHost(o.TLSConfig)
	setSizes(&o.PoolSize, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	o.Dialer = t.dialer(o.DialTimeout, o.TLSConfig)
	return redis.NewFailoverClient(o), nil
}

func (t *target) openCluster(hook connectHook) (redis.UniversalClient, error) {
	o, err := redis.ParseClusterURL(t.goRedisURL())
	if err != nil {
		return nil, err
	}
	o.Username, o.Password, o.OnConnect, o.TLSConfig = t.user, t.password, hook, strict(o.TLSConfig)
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	o.MaintNotificationsConfig = withoutNotifications()
	o.ClusterStateReloadInterval = reloadInterval
	if len(t.hosts) > 1 { // a single name is the name of all nodes
		verifyEachHost(o.TLSConfig)
	}
	setSizes(&o.PoolSize, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	o.Dialer = t.dialer(o.DialTimeout, o.TLSConfig)
	return redis.NewClusterClient(o), nil
}

// setSizes sets defaults for what the URL does not set.
func setSizes(pool *int, timeouts ...*time.Duration) {
	*pool = cmp.Or(*pool, poolSize)
	for _, t := range timeouts {
		*t = cmp.Or(*t, timeout)
	}
}

// verifyEachHost makes TLS verify each certificate against the address that is dialed, not against
// the first host of the URL.
func verifyEachHost(c *tls.Config) {
	if c != nil {
		c.ServerName = ""
	}
}

// withoutNotifications disables maintenance notifications, which only Redis Enterprise supports.
// They would cost a command for each connection.
func withoutNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}
