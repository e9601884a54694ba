package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"switchboard/client/backend"
)

// connect returns a client of the broker. It does not call it.
func (a *app) connect() (*backend.Client, error) {
	if err := a.chooseProfile(); err != nil {
		return nil, err
	}
	key, err := a.key()
	if err != nil {
		return nil, err
	}
	config, err := a.tlsConfig()
	if err != nil {
		return nil, err
	}
	o := backend.Options{URLs: a.addresses(), Key: key, Timeout: a.timeout, RetryFor: a.retryFor}
	if o.RetryFor == 0 {
		o.RetryFor = -1
	}
	if config != nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.TLSClientConfig, transport.MaxIdleConnsPerHost = config, 64
		o.HTTP = &http.Client{Transport: transport}
	}
	sb, err := backend.New(o)
	if err != nil {
		return nil, usage("%s: %w", a.value(urlSetting).from, err)
	}
	return sb, nil
}

// addresses returns the addresses of the brokers.
func (a *app) addresses() []string { return split(a.value(urlSetting).text) }

// split returns the items of a list with commas.
func split(list string) (items []string) {
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// tlsConfig returns the configuration of https and wss, nil for the authorities of the system.
func (a *app) tlsConfig() (*tls.Config, error) {
	ca := a.value(caSetting)
	if ca.text == "" {
		return nil, nil
	}
	text, err := os.ReadFile(ca.text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ca.from, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: %s holds no certificate in PEM form", ca.from, ca.text)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// key returns the API key, "" for none.
func (a *app) key() (string, error) {
	if a.apiKey != "" {
		if a.keyFile != "" {
			return "", usage("--api-key, --key-file: only one of them")
		}
		a.note("every user of this machine can see the key in --api-key, and the shell keeps it: use SWITCHBOARD_KEY or --key-file")
		return a.apiKey, nil
	}
	return a.secret(keySetting, "the file of the API key", checkKey)
}

// secret returns a secret that a variable holds, or a file that a flag, a variable or a profile
// names; "" for none. check returns the secret in a text; where names its source.
func (a *app) secret(s setting, what string, check func(text, where string) (string, error)) (string, error) {
	v := a.value(s)
	switch {
	case v.text == "":
		return "", nil
	case v.secret:
		return check(v.text, v.from)
	}
	text, err := os.ReadFile(v.text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return check(string(text), v.text)
}

// checkKey returns the key in a text, which may be the output of `switchboard key`.
func checkKey(text, where string) (string, error) {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimSpace(strings.TrimPrefix(line, "key:"))
	switch {
	case line == "":
		return "", fmt.Errorf("%s: there is no key", where)
	case strings.HasPrefix(line, "sha256:"), strings.HasPrefix(line, "entry:"):
		return "", fmt.Errorf("%s: this is the entry for the broker's auth.keys; calls need the key itself (swb_…)", where)
	case strings.ContainsAny(line, " \t"):
		return "", fmt.Errorf("%s: a key has no white space", where)
	}
	return line, nil
}

// readLine returns the first line of the standard input, for secrets that must not be arguments.
func (a *app) readLine(what string) (string, error) {
	line, err := bufio.NewReader(a.stdin).ReadString('\n')
	if line = strings.TrimSpace(line); line == "" || err != nil && !errors.Is(err, io.EOF) {
		return "", usage("there is no %s on the standard input", what)
	}
	return line, nil
}

// completion is the function of cobra that completes an argument.
type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)
