package configs

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"switchboard/broker/auth"
)

// Secret is text that is not to be seen. Converting it to string is the only way to it.
type Secret string

const hidden = "(secret)"

// String implements fmt.Stringer.
func (Secret) String() string { return hidden }

// GoString implements fmt.GoStringer.
func (Secret) GoString() string { return hidden }

// MarshalText implements encoding.TextMarshaler, for JSON and logs.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// readFile is the content of the file that the setting key names; errors name the key.
func readFile(key, path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return text, nil
}

// readSecrets returns the lines of a file, so that two of them make rotation possible. It skips
// blank lines and comments, which begin with #. check says what is wrong with a secret, and repeats
// nothing of it; the error names the file and the line. An empty file is an error: it is named so
// that the broker is not open.
func readSecrets(key, path string, check func(string) error) ([]string, error) {
	text, err := readFile(key, path)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("%s: %s is not text, as `openssl rand -base64 48` would make it", key, path)
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

// secretsOf returns those of the setting key, or the lines of path, its twin with _file, where that
// is given. The error about one of the setting names its number.
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

// readOneSecret is for where two make no sense.
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

// tokenSecret checks a secret that signs tokens.
func tokenSecret(secret string) error {
	if err := auth.CheckSecret([]byte(secret)); err != nil {
		return fmt.Errorf("the secret %w", err)
	}
	return nil
}

// anySecret accepts every secret that is not empty.
func anySecret(string) error { return nil }

// ExposedFiles returns the files with secrets, private keys among them, that every user of the
// machine may read.
func (b Broker) ExposedFiles() []string {
	paths := []string{
		b.Auth.KeysFile, b.Auth.HS256SecretFile, b.PeerSecretFile, b.Webhooks.SecretsFile, b.Hooks.SecretsFile,
		b.TLS.KeyFile, b.PeerTLS.KeyFile, b.RedisTLS.KeyFile,
	}
	for _, key := range b.Auth.TokenKeys {
		if key.alg == "HS256" {
			paths = append(paths, key.file)
		}
	}
	return exposed(paths)
}

// ExposedFiles is Broker.ExposedFiles for the janitor.
func (j Janitor) ExposedFiles() []string {
	return exposed([]string{j.Webhooks.SecretsFile, j.PeerTLS.KeyFile, j.RedisTLS.KeyFile})
}

// exposed returns those of the files that are readable by the world, each once.
func exposed(paths []string) (list []string) {
	const worldReadable = 0o004
	for _, path := range paths {
		info, err := os.Stat(path) // follows links, of which only the target has a mode
		if err == nil && info.Mode()&worldReadable != 0 && !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	return list
}
