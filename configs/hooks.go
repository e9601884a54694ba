package configs

import (
	"errors"
	"time"

	"switchboard/broker/hook"
	"switchboard/internal/backend"
)

// Hooks are the calls to the backend that decide whether clients may connect and subscribe.
type Hooks struct {
	Connect     Secret        `setting:"connect"` // the URLs may hold a token
	Subscribe   Secret        `setting:"subscribe"`
	Secrets     []Secret      `setting:"secrets"`
	SecretsFile string        `setting:"secrets_file"`
	Timeout     time.Duration `setting:"timeout"`
	Concurrency int           `setting:"concurrency"`
}

func defaultHooks() Hooks { return Hooks{Timeout: 2 * time.Second, Concurrency: 64} }

var hookGroup = group{"Hooks", []spec{
	{key: "hooks.connect", text: "https URL (http on the loopback address) that decides whether a client may connect;\nsee docs/access.md", unset: "default none: no call"},
	{key: "hooks.subscribe", text: "such a URL that decides whether a client may subscribe", unset: "default none: no call"},
	{key: "hooks.secrets", text: "secrets of at least 16 bytes; every call has a signature with each, which allows\nrotation", unset: "required with a URL"},
	{key: "hooks.secrets_file", text: "a file with one per line instead; # begins a comment"},
	{key: "hooks.timeout", text: "deadline for the answer; without one the client is refused"},
	{key: "hooks.concurrency", text: "maximum number of calls at once"},
}}

func (h Hooks) validate() error {
	switch {
	case len(h.Secrets) > 0 && h.SecretsFile != "":
		return errors.New("hooks.secrets and hooks.secrets_file: both are given, keep one")
	case h.Timeout > maxHookTimeout:
		return errors.New("hooks.timeout: at most 5s, since connects wait for the answer")
	}
	return nil
}

// maxHookTimeout leaves time for the rest of a connect within times.connect.
const maxHookTimeout = 5 * time.Second

// options returns the options of the hooks. It reads the secrets file.
func (h Hooks) options() (hook.Options, error) {
	secrets, err := secretsOf("hooks.secrets", h.Secrets, h.SecretsFile, backend.CheckSecret)
	return hook.Options{
		Connect: string(h.Connect), Subscribe: string(h.Subscribe), Secrets: secrets, Timeout: h.Timeout, Concurrency: h.Concurrency,
	}, err
}
