package configs

import (
	"errors"
	"time"
)

// Janitor is what the janitor is told.
type Janitor struct {
	Redis    Secret   `koanf:"redis"` // the URL may hold a password
	RedisTLS RedisTLS `koanf:"redis_tls"`
	PeerTLS  PeerTLS  `koanf:"peer_tls"`
	Prefix   string   `koanf:"prefix"`
	HTTP     string   `koanf:"http"`

	Once         bool          `koanf:"once"`
	DryRun       bool          `koanf:"dry_run"`
	ServersEvery time.Duration `koanf:"servers_every"`
	QueuesEvery  time.Duration `koanf:"queues_every"`
	MaxAge       time.Duration `koanf:"max_age"`
	MaxMessages  int           `koanf:"max_messages"`
	Patience     time.Duration `koanf:"patience"`

	DeadLetters bool `koanf:"dead_letters"`
	Retry       bool `koanf:"retry"`

	Webhooks Webhooks `koanf:"webhooks"`

	LogLevel  string `koanf:"log_level"`
	LogFormat string `koanf:"log_format"`

	// Unknown are the SWITCHBOARD_JANITOR_ variables that mean nothing: worth a warning.
	Unknown []string `koanf:"-"`
}

// DefaultJanitor is a janitor that nobody told anything, which lacks its Redis.
func DefaultJanitor() Janitor {
	return Janitor{
		ServersEvery: 3 * time.Second,
		QueuesEvery:  5 * time.Minute,
		MaxAge:       30 * time.Minute,
		MaxMessages:  1000,
		Patience:     time.Minute,
		Webhooks:     defaultWebhooks(),
		LogLevel:     "info",
		LogFormat:    "auto",
	}
}

// LoadJanitor is LoadBroker for the janitor.
func LoadJanitor(args, environ []string) (Janitor, error) {
	j := DefaultJanitor()
	unknown, err := janitorProgram.load(&j, args, environ)
	if err != nil {
		return Janitor{}, err
	}
	j.Unknown = unknown
	if j.Redis == "" {
		return j, UsageError{errors.New("--redis: missing, there is nothing to clean without it")}
	}
	if j.Retry && !j.DeadLetters {
		return j, UsageError{errors.New("--retry: belongs to --dead-letters")}
	}
	if err := j.Webhooks.validate(); err != nil {
		return j, err
	}
	return j, j.Registry().Validate()
}
