package setup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"switchboard/configs"
	"switchboard/internal/latency"
	"switchboard/internal/redispipe"
	"switchboard/internal/redisurl"
)

const (
	// checkTimeout bounds one look at Redis.
	checkTimeout = 5 * time.Second
	// firstWait doubles until lastWait between the looks.
	firstWait = 250 * time.Millisecond
	lastWait  = 4 * time.Second
	// complainEvery is how often the log says that Redis is away.
	complainEvery = 5 * time.Second
)

// Redis is the one Redis, with all that stands on it.
type Redis struct {
	Pipe  *redispipe.Pipe
	Watch *redisurl.Watch

	client redis.UniversalClient
	where  string // the URL without its secrets
	log    zerolog.Logger
}

// OpenRedis does not connect yet; the error is about the URL. Round trips are
// measured in r. The certificate files are looked at whenever a connection is made.
func OpenRedis(url string, files configs.RedisTLS, r prometheus.Registerer, log zerolog.Logger) (*Redis, error) {
	config, err := files.Dial(log)
	if err != nil {
		return nil, err
	}
	client, watch, err := redisurl.OpenTLS(url, config)
	if err != nil {
		return nil, err
	}
	observe, err := redisMetrics(r)
	if err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	pipe := redispipe.New(client, redispipe.Options{Observe: observe})
	return &Redis{Pipe: pipe, Watch: watch, client: client, where: redisurl.Redact(url), log: log}, nil
}

// Close closes the connections.
func (r *Redis) Close() error { return r.client.Close() }

// Ping is nil when Redis answers.
func (r *Redis) Ping(ctx context.Context) error { return r.client.Ping(ctx).Err() }

// Check connects, and looks once whether this Redis may be used; redisurl.ErrEvicts when
// not.
func (r *Redis) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if err := r.Watch.Begin(ctx); err != nil {
		return err
	}
	err := redisurl.CheckPolicy(ctx, r.client)
	if errors.Is(err, redisurl.ErrPolicyUnknown) {
		r.log.Warn().Str("redis", r.where).Msg("Redis does not tell its maxmemory-policy; make sure that it is noeviction")
		return nil
	}
	return err
}

// Settle looks until Redis answers, and returns redisurl.ErrEvicts when it must not be
// used. It is nil when all is well, and when ctx ends.
func (r *Redis) Settle(ctx context.Context) error {
	var complained time.Time
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		switch err := r.Check(ctx); {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			r.log.Info().Str("redis", r.where).Msg("Redis answers")
			return nil
		case errors.Is(err, redisurl.ErrEvicts):
			return err
		case time.Since(complained) >= complainEvery:
			complained = time.Now()
			r.log.Warn().Err(err).Str("redis", r.where).Msg("Redis does not answer; trying on")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// redisMetrics gives a redispipe.Options.Observe.
func redisMetrics(r prometheus.Registerer) (func(time.Duration, int, error), error) {
	seconds := prometheus.NewHistogram(latency.Histogram("switchboard_redis_seconds", "How long round trips to Redis take.", 0.0001, 10))
	commands := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "switchboard_redis_commands_total", Help: "Commands sent; over the round trips it is how many share one.",
	})
	failures := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "switchboard_redis_errors_total", Help: "Round trips that Redis did not answer.",
	})
	for _, c := range []prometheus.Collector{seconds, commands, failures} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return func(d time.Duration, n int, err error) {
		seconds.Observe(d.Seconds())
		commands.Add(float64(n))
		if err != nil {
			failures.Inc()
		}
	}, nil
}
