package configs

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"
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

// readSecrets are the lines of a file, so that two of them make rotation possible.
// An empty file is an error: whoever names one does not mean to be open.
func readSecrets(key, path string) ([]string, error) {
	text, err := readFile(key, path)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("%s: %s is not text, as `openssl rand -base64 48` would make it", key, path)
	}
	var secrets []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			secrets = append(secrets, line)
		}
	}
	if len(secrets) == 0 {
		return nil, fmt.Errorf("%s: %s is empty", key, path)
	}
	return secrets, nil
}

// secretsOf are those of the setting key, or the lines of path, its twin with _file, where that is given.
func secretsOf(key string, given []Secret, path string) (secrets []string, err error) {
	if path != "" {
		return readSecrets(key+"_file", path)
	}
	for _, secret := range given {
		secrets = append(secrets, string(secret))
	}
	return secrets, nil
}

// readOneSecret is for where two make no sense.
func readOneSecret(key, path string) (string, error) {
	secrets, err := readSecrets(key, path)
	if err != nil {
		return "", err
	}
	if len(secrets) > 1 {
		return "", fmt.Errorf("%s: %w", key, errors.New(path+" has more than one line"))
	}
	return secrets[0], nil
}
