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
	Queues int    `setting:"requests.queues" default:"16" help:"number of qq_ lists over which client requests are spread"`
	Allow  string `setting:"requests.allow" default:"users" choices:"anyone,users,nobody" help:"which clients may send requests: anyone, users or nobody"`
	Rate   int    `setting:"requests.rate" default:"10" zero:"true" help:"requests a second from one connection, with bursts of four seconds' worth; 0 for no limit"`

	URL         Secret        `setting:"requests.url" unset:"default none: workers of the qq_ lists answer" help:"https URL (http on the loopback address) that answers client requests; the qq_ lists are then not used. See docs/protocol.md"`
	Secrets     []Secret      `setting:"requests.secrets" unset:"required with a URL" help:"secrets of at least 16 bytes; every call has a signature with each, which allows rotation"`
	SecretsFile string        `setting:"requests.secrets_file" help:"a file with one per line instead; # begins a comment"`
	Timeout     time.Duration `setting:"requests.timeout" default:"5s" help:"deadline for the answer"`
	Concurrency int           `setting:"requests.concurrency" default:"64" help:"maximum number of calls at once"`
	Share       int           `setting:"requests.share" unset:"default a quarter of requests.concurrency" help:"requests of one user that wait for the answer of requests.url, on this instance; for clients without a user, requests of one address"`
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
