package configs

import (
	"errors"
	"time"
)

// Janitor has the settings of the janitor.
type Janitor struct {
	Redis    Secret   `setting:"redis"` // the URL may hold a password
	RedisTLS RedisTLS `setting:"redis_tls"`
	PeerTLS  PeerTLS  `setting:"peer_tls"`
	Prefix   string   `setting:"prefix"`
	HTTP     string   `setting:"http"`

	Once         bool          `setting:"once"`
	DryRun       bool          `setting:"dry_run"`
	ServersEvery time.Duration `setting:"servers_every"`
	QueuesEvery  time.Duration `setting:"queues_every"`
	StatesEvery  time.Duration `setting:"states_every"`
	MaxAge       time.Duration `setting:"max_age"`
	MaxMessages  int           `setting:"max_messages"`
	Patience     time.Duration `setting:"patience"`

	DeadLetters bool `setting:"dead_letters"`
	Retry       bool `setting:"retry"`

	Webhooks Webhooks `setting:"webhooks"`

	LogLevel  string `setting:"log_level"`
	LogFormat string `setting:"log_format"`

	// Unknown are the SWITCHBOARD_JANITOR_ variables that belong to no setting.
	Unknown []string `setting:"-"`
}

// DefaultJanitor returns the defaults. Redis has none.
func DefaultJanitor() Janitor {
	return Janitor{
		ServersEvery: 3 * time.Second,
		QueuesEvery:  5 * time.Minute,
		StatesEvery:  5 * time.Minute,
		MaxAge:       30 * time.Minute,
		MaxMessages:  1000,
		Patience:     time.Minute,
		Webhooks:     defaultWebhooks(),
		LogLevel:     "info",
		LogFormat:    "auto",
	}
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
