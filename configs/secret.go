package configs

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"switchboard/broker/auth"
)

// Secret is text that is never printed. Only a conversion to string reveals it.
type Secret string

const hidden = "(secret)"

// Format implements fmt.Formatter. A String method is not enough: %d ignores it and prints the
// text.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// String implements fmt.Stringer.
func (Secret) String() string { return hidden }

// MarshalText implements encoding.TextMarshaler, for JSON and logs.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// readFile returns the content of the file at path. Errors name the setting key.
func readFile(key, path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return text, nil
}

// readSecrets returns the secrets in a file, one per line; several allow rotation. It skips blank
// lines and comments, which begin with #. check returns an error for a bad secret; that error must
// not contain the secret. readSecrets adds the file and the line. An empty file is an error:
// otherwise the broker would be open to all callers.
func readSecrets(key, path string, check func(string) error) ([]string, error) {
	text, err := readFile(key, path)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("%s: %s is not text; `openssl rand -base64 48` prints a secret that is text", key, path)
	}
	var secrets []string
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if err := check(line); err != nil {
			return nil, fmt.Errorf("%s: %s: line %d: %w", key, path, number, err)
		}
		secrets = append(secrets, line)
	}
	if len(secrets) == 0 {
		return nil, fmt.Errorf("%s: %s is empty", key, path)
	}
	return secrets, nil
}

// secretsOf returns the secrets of two settings: given has the secrets of the setting key, and
// path is the value of the setting <key>_file. A path has precedence. An error about a bad secret
// has the number or the line of the secret.
func secretsOf(key string, given []Secret, path string, check func(string) error) (secrets []string, err error) {
	if path != "" {
		return readSecrets(key+"_file", path, check)
	}
	for i, secret := range given {
		if err := check(string(secret)); err != nil {
			return nil, fmt.Errorf("%s: entry %d of %d: %w", key, i+1, len(given), err)
		}
		secrets = append(secrets, string(secret))
	}
	return secrets, nil
}

// readOneSecret reads a file with exactly one secret.
func readOneSecret(key, path string, check func(string) error) (string, error) {
	secrets, err := readSecrets(key, path, check)
	if err != nil {
		return "", err
	}
	if len(secrets) > 1 {
		return "", fmt.Errorf("%s: %s has more than one line", key, path)
	}
	return secrets[0], nil
}

// checkTokenSecret checks a secret for tokens.
func checkTokenSecret(secret string) error {
	if err := auth.CheckSecret([]byte(secret)); err != nil {
		return fmt.Errorf("the secret %w", err)
	}
	return nil
}

// anySecret accepts every secret that is not empty.
func anySecret(string) error { return nil }

// ExposedFiles returns the files with secrets or private keys that every user of the machine may
// read.
func (b Broker) ExposedFiles() []string {
	paths := []string{
		b.Auth.KeysFile, b.Auth.HS256SecretFile, b.PeerSecretFile, b.Webhooks.SecretsFile, b.Hooks.SecretsFile, b.Requests.SecretsFile,
		b.TLS.KeyFile, b.PeerTLS.KeyFile, b.RedisTLS.KeyFile,
	}
	if b.Kit.Accounts != nil {
		paths = append(paths, b.Kit.Accounts.SigningKeyFile)
	}
	for _, key := range b.Auth.TokenKeys {
		if key.alg == "HS256" {
			paths = append(paths, key.file)
		}
	}
	return exposed(paths)
}

// ExposedFiles returns the files with secrets or private keys that every user of the machine may
// read.
func (j Janitor) ExposedFiles() []string {
	return exposed([]string{j.Webhooks.SecretsFile, j.PeerTLS.KeyFile, j.RedisTLS.KeyFile})
}

// exposed returns the files that every user may read, each once.
func exposed(paths []string) (list []string) {
	const worldReadable = 0o004
	for _, path := range paths {
		info, err := os.Stat(path) // follows symbolic links: only the target's mode counts
		if err == nil && info.Mode()&worldReadable != 0 && !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	return list
}
