package configs

import (
	"errors"

	"switchboard/internal/setting"
	"switchboard/janitor"
)

// Janitor has the settings of the janitor.
type Janitor struct {
	Redis    Secret `setting:"redis" flag:"URL" unset:"required" help:"the Redis of the brokers: redis://, redis-sentinel:// or redis-cluster://\n(rediss for TLS), like redis://:password@host:6379/0"`
	RedisTLS RedisTLS
	PeerTLS  PeerTLS
	Prefix   string `setting:"prefix" flag:"TEXT" unset:"default none" help:"prefix of all keys in Redis, the same as on the brokers"`
	HTTP     string `setting:"http" flag:"ADDRESS" unset:"default none" help:"host:port of /healthz, /readyz and /metrics"`

	Once bool `setting:"once" flag:"" unset:"default no" help:"make one round of each kind, then exit"`

	// Options has all options but the stores, the logger and the metrics.
	Options janitor.Options `json:"-"`

	DeadLetters bool `setting:"dead_letters" flag:"" unset:"default no" help:"print them, one JSON object per line, then exit"`
	Retry       bool `setting:"retry" flag:"" unset:"default no" help:"with --dead-letters: queue them again, for the running janitors to send"`

	Webhooks Webhooks

	Log

	// Unknown are the SWITCHBOARD_JANITOR_ variables that belong to no setting.
	Unknown []string `setting:"-"`
}

// DefaultJanitor returns the defaults. Redis has none.
func DefaultJanitor() (j Janitor) {
	setting.SetDefaults(&j)
	return j
}

// LoadJanitor reads the settings of the janitor like LoadBroker.
func LoadJanitor(args, environ []string) (Janitor, error) {
	j := DefaultJanitor()
	unknown, err := janitorProgram.load(&j, args, environ)
	if err != nil {
		return Janitor{}, err
	}
	j.Unknown = unknown
	if j.Redis == "" {
		return j, UsageError{errors.New("--redis: missing; the janitor cleans up in Redis")}
	}
	if j.Retry && !j.DeadLetters {
		return j, UsageError{errors.New("--retry: needs --dead-letters")}
	}
	if err := j.Webhooks.validate(); err != nil {
		return j, err
	}
	return j, j.Registry().Validate()
}
