package configs

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"switchboard/broker"
	"switchboard/broker/hook"
	"switchboard/broker/namespace"
	"switchboard/internal/backend"
)

// Requests are the requests that clients send to the backend.
type Requests struct {
	Queues int    `setting:"queues"`
	Allow  string `setting:"allow"`
	Rate   int    `setting:"rate"` // of a connection, per second

	URL         Secret        `setting:"url"` // it may hold a token
	Secrets     []Secret      `setting:"secrets"`
	SecretsFile string        `setting:"secrets_file"`
	Timeout     time.Duration `setting:"timeout"`
	Concurrency int           `setting:"concurrency"`
	Share       int           `setting:"share"` // zero for a quarter of Concurrency
}

func defaultRequests() Requests {
	return Requests{Queues: 16, Allow: "users", Rate: 10, Timeout: 5 * time.Second, Concurrency: 64}
}

func (r Requests) validate() error {
	if len(r.Secrets) > 0 && r.SecretsFile != "" {
		return errors.New("requests.secrets and requests.secrets_file: both are given, keep one")
	}
	return nil
}

// options returns the options of requests. It reads the secrets file.
func (r Requests) options() (broker.RequestOptions, error) {
	from, err := namespace.ParseAccess(cmp.Or(r.Allow, "users"))
	if err != nil {
		return broker.RequestOptions{}, fmt.Errorf("requests.allow: %w", err)
	}
	secrets, err := secretsOf("requests.secrets", r.Secrets, r.SecretsFile, backend.CheckSecret)
	return broker.RequestOptions{
		Queues: r.Queues, From: from, Rate: r.Rate, Share: r.Share,
		Backend: hook.RequestOptions{URL: string(r.URL), Secrets: secrets, Timeout: r.Timeout, Concurrency: r.Concurrency},
	}, err
}
