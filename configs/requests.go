package configs

import (
	"cmp"
	"errors"
	"fmt"

	"switchboard/broker"
	"switchboard/broker/namespace"
	"switchboard/internal/backend"
)

// Requests are the requests that clients send to the backend.
type Requests struct {
	Allow string `setting:"requests.allow" default:"users" choices:"anyone,users,nobody" help:"which clients may send requests: anyone, users or nobody"`

	URL         Secret                `setting:"requests.url" unset:"default none: workers of the qq_ lists answer" help:"https URL (http on the loopback address) that answers client requests; the qq_ lists are then not used. See docs/protocol.md"`
	Secrets     []Secret              `setting:"requests.secrets" unset:"required with a URL" help:"secrets of at least 16 bytes; every call has a signature with each, which allows rotation"`
	SecretsFile string                `setting:"requests.secrets_file" help:"a file with one per line instead; # begins a comment"`
	Calls       broker.RequestOptions `json:"-"`
}

func (r Requests) validate() error {
	if len(r.Secrets) > 0 && r.SecretsFile != "" {
		return errors.New("requests.secrets and requests.secrets_file: both are given, keep one")
	}
	return nil
}

// options returns the options of requests. It reads the secrets file.
func (r Requests) options() (o broker.RequestOptions, err error) {
	o = r.Calls
	if o.From, err = namespace.ParseAccess(cmp.Or(r.Allow, "users")); err != nil {
		return o, fmt.Errorf("requests.allow: %w", err)
	}
	o.Backend.URL = string(r.URL)
	o.Backend.Secrets, err = secretsOf("requests.secrets", r.Secrets, r.SecretsFile, backend.CheckSecret)
	return o, err
}
