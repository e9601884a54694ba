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
	poolSize = 32              // per node: a redispipe.Pipe has eight round trips under way and eight durable ones at most

	// relook is how old a Cluster client's view of who holds which slot gets. A master that
	// died answers nobody with the address of its successor, so without a look the client
	// would stay with it for the library's default, a minute.
	relook = time.Second
)

// Open makes a client for the Redis at rawURL and a Watch over its connections. It
// does not connect: [Watch.Begin] or the first command does. The caller closes the
// client. The error is one line, names the part of the URL that is wrong and never
// holds user or password.
//
// The client repeats nothing on its own (MaxRetries -1), since a script that was cut
// off may have run, and keeps to deadlines of contexts. A Cluster client still
// repeats a pipeline that broke, except with commands whose NoRetry is true.
func Open(rawURL string) (redis.UniversalClient, *Watch, error) { return OpenTLS(rawURL, nil) }

// OpenTLS is Open with certificates: config is asked for every connection when it is dialled, and takes the place of what
// the URL says of TLS. Nil means the system's authorities, and no certificate to show.
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

// Redact is rawURL without user, password and query, for a log.
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
	o, err := redis.ParseURL(t.inner())
	if err != nil {
		return nil, err
	}
	o.Username, o.Password, o.OnConnect, o.TLSConfig = t.user, t.password, hook, strict(o.TLSConfig)
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	o.MaintNotificationsConfig = withoutNotifications()
	setSizes(&o.PoolSize, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	o.Dialer = t.dialer(o.DialTimeout)
	return redis.NewClient(o), nil
}

func (t *target) openSentinel(hook connectHook) (redis.UniversalClient, error) {
	o, err := redis.ParseFailoverURL(t.inner())
	if err != nil {
		return nil, err
	}
	o.Username, o.Password, o.OnConnect, o.TLSConfig = t.user, t.password, hook, strict(o.TLSConfig)
	o.SentinelUsername, o.SentinelPassword = t.sentinelUser, t.sentinelPassword
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	verifyEachHost(o.TLSConfig)
	setSizes(&o.PoolSize, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	o.Dialer = t.dialer(o.DialTimeout)
	return redis.NewFailoverClient(o), nil
}

func (t *target) openCluster(hook connectHook) (redis.UniversalClient, error) {
	o, err := redis.ParseClusterURL(t.inner())
	if err != nil {
		return nil, err
	}
	o.Username, o.Password, o.OnConnect, o.TLSConfig = t.user, t.password, hook, strict(o.TLSConfig)
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	o.MaintNotificationsConfig = withoutNotifications()
	o.ClusterStateReloadInterval = relook
	if len(t.hosts) > 1 { // one name in the URL is the name that all nodes share
		verifyEachHost(o.TLSConfig)
	}
	setSizes(&o.PoolSize, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	o.Dialer = t.dialer(o.DialTimeout)
	return redis.NewClusterClient(o), nil
}

// setSizes fills in what the URL left open.
func setSizes(pool *int, timeouts ...*time.Duration) {
	*pool = cmp.Or(*pool, poolSize)
	for _, t := range timeouts {
		*t = cmp.Or(*t, timeout)
	}
}

// verifyEachHost makes TLS compare each certificate with the address dialled, and not
// with the first host of the URL.
func verifyEachHost(c *tls.Config) {
	if c != nil {
		c.ServerName = ""
	}
}

// withoutNotifications saves a command per connection that only Redis Enterprise knows.
func withoutNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}
