package setup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"switchboard/broker/health"
	"switchboard/configs"
	"switchboard/internal/latency"
	"switchboard/internal/redispipe"
	"switchboard/internal/redisurl"
)

const (
	// checkTimeout bounds one check of Redis.
	checkTimeout = 5 * time.Second
	// firstWait is the first delay between checks. It doubles up to lastWait.
	firstWait = 250 * time.Millisecond
	lastWait  = 4 * time.Second
	// warnInterval is the interval of warnings while Redis does not answer.
	warnInterval = 5 * time.Second
)

// Redis is the connection of a command to Redis.
type Redis struct {
	Pipe  *redispipe.Pipe
	Watch *redisurl.Watch // detects restarts and failovers of Redis

	client redis.UniversalClient
	where  string // the URL without its secrets
	log    zerolog.Logger
}

// OpenRedis prepares connections, but does not connect: an error concerns the URL, the certificate
// files or the metrics of round trips, which it registers at r. Each new connection reads the
// certificate files again.
func OpenRedis(url string, files configs.RedisTLS, r prometheus.Registerer, log zerolog.Logger) (*Redis, error) {
	config, err := files.ClientConfig(log)
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

// Ping returns nil if Redis answers.
func (r *Redis) Ping(ctx context.Context) error { return r.client.Ping(ctx).Err() }

// Check connects, and checks once that Redis does not evict keys. It returns redisurl.ErrEvicts if
// Redis may evict some.
func (r *Redis) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if err := r.Watch.Begin(ctx); err != nil {
		return err
	}
	err := redisurl.CheckPolicy(ctx, r.client)
	if errors.Is(err, redisurl.ErrPolicyUnknown) {
		r.log.Warn().Str("redis", r.where).Msg("the maxmemory-policy of Redis cannot be read; make sure that it is noeviction")
		return nil
	}
	return err
}

// AwaitCheck repeats Check until Redis answers. It returns redisurl.ErrEvicts if Redis may evict
// keys, and nil otherwise, also at the end of ctx.
func (r *Redis) AwaitCheck(ctx context.Context) error {
	var warned time.Time
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		switch err := r.Check(ctx); {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			r.log.Info().Str("redis", r.where).Msg("Redis answers")
			return nil
		case errors.Is(err, redisurl.ErrEvicts):
			return err
		case time.Since(warned) >= warnInterval:
			warned = time.Now()
			r.log.Warn().Err(err).Str("redis", r.where).Msg("Redis does not answer; trying again")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// Memory returns the used memory, and its limit, of all Redis masters.
func (r *Redis) Memory(ctx context.Context) ([]health.Memory, error) {
	list, err := redisurl.ReadMemory(ctx, r.client)
	memory := make([]health.Memory, len(list))
	for i, m := range list {
		memory[i] = health.Memory(m)
	}
	return memory, err
}

// redisMetrics returns a function for redispipe.Options.Observe.
func redisMetrics(r prometheus.Registerer) (func(time.Duration, int, error), error) {
	seconds := prometheus.NewHistogram(latency.Histogram("switchboard_redis_seconds", "Duration of round trips to Redis.", 0.0001, 10))
	commands := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "switchboard_redis_commands_total", Help: "Commands sent. Divided by the number of round trips, it is the mean size of a pipeline.",
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
