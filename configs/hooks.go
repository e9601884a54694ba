package configs

import (
	"errors"
	"time"

	"switchboard/broker/hook"
	"switchboard/internal/backend"
)

// Hooks are the calls to the backend that decide whether clients may connect and subscribe.
type Hooks struct {
	Connect     Secret       `setting:"hooks.connect" unset:"default none: no call" help:"https URL (http on the loopback address) that decides whether a client may connect;\nsee docs/access.md"`
	Subscribe   Secret       `setting:"hooks.subscribe" unset:"default none: no call" help:"such a URL that decides whether a client may subscribe"`
	Secrets     []Secret     `setting:"hooks.secrets" unset:"required with a URL" help:"secrets of at least 16 bytes; every call has a signature with each, which allows rotation"`
	SecretsFile string       `setting:"hooks.secrets_file" help:"a file with one per line instead; # begins a comment"`
	Calls       hook.Options `json:"-"`
}

func (h Hooks) validate() error {
	switch {
	case len(h.Secrets) > 0 && h.SecretsFile != "":
		return errors.New("hooks.secrets and hooks.secrets_file: both are given, keep one")
	case h.Calls.Timeout > maxHookTimeout:
		return errors.New("hooks.timeout: at most 5s, since connects wait for the answer")
	}
	return nil
}

// maxHookTimeout leaves time for the rest of a connect within times.connect.
const maxHookTimeout = 5 * time.Second

// options returns the options of the hooks. It reads the secrets file.
func (h Hooks) options() (o hook.Options, err error) {
	o = h.Calls
	o.Connect, o.Subscribe = string(h.Connect), string(h.Subscribe)
	o.Secrets, err = secretsOf("hooks.secrets", h.Secrets, h.SecretsFile, backend.CheckSecret)
	return o, err
}
