package configs

import (
	"errors"
	"time"

	"switchboard/broker/hook"
	"switchboard/internal/backend"
)

// Hooks are where the backend is asked who may come in.
type Hooks struct {
	Connect     Secret        `setting:"connect"` // the URLs may hold a token
	Subscribe   Secret        `setting:"subscribe"`
	Secrets     []Secret      `setting:"secrets"`
	SecretsFile string        `setting:"secrets_file"`
	Timeout     time.Duration `setting:"timeout"`
	Concurrency int           `setting:"concurrency"`
}

func defaultHooks() Hooks { return Hooks{Timeout: 2 * time.Second, Concurrency: 64} }

var hookGroup = group{"The backend's say", []about{
	{key: "hooks.connect", text: "https URL (http on the loopback address) that is asked whether a client may connect,\nsee docs/access.md", unset: "default none: it is not asked"},
	{key: "hooks.subscribe", text: "https URL that is asked whether a client may subscribe, likewise", unset: "default none: it is not asked"},
	{key: "hooks.secrets", text: "each signs every question, 16 bytes at least; several allow rotation", unset: "required with either"},
	{key: "hooks.secrets_file", text: "a file with one per line instead; # begins a comment"},
	{key: "hooks.timeout", text: "how long a client waits for the answer; without one it is not let in"},
	{key: "hooks.concurrency", text: "the most questions at once"},
}}

func (h Hooks) validate() error {
	switch {
	case len(h.Secrets) > 0 && h.SecretsFile != "":
		return errors.New("hooks.secrets and hooks.secrets_file: both are given, keep one")
	case h.Timeout > maxHookTimeout:
		return errors.New("hooks.timeout: more than 5s would keep clients waiting that nobody will answer")
	}
	return nil
}

// maxHookTimeout leaves time for the rest of a connect within times.connect.
const maxHookTimeout = 5 * time.Second

// options reads the file that the settings name.
func (h Hooks) options() (hook.Options, error) {
	secrets, err := secretsOf("hooks.secrets", h.Secrets, h.SecretsFile, backend.CheckSecret)
	return hook.Options{
		Connect: string(h.Connect), Subscribe: string(h.Subscribe), Secrets: secrets, Timeout: h.Timeout, Concurrency: h.Concurrency,
	}, err
}
