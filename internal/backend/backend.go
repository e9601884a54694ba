// Package backend holds the common parts of HTTP calls to the user's backend: hooks, webhooks and
// key sets.
package backend

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"switchboard/internal/tlsconfig"
)

// MinSecret is the smallest length of a secret that signs calls, in bytes.
const MinSecret = 16

// CheckURL returns an error if the URL of an endpoint is invalid. The error does not contain the
// URL, which may hold a secret.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("want https:// and a host, or http:// and a loopback address")
	case !Trusted(u):
		return errors.New("the scheme must be https: http to another machine can be read and changed")
	}
	return nil
}

// Trusted reports whether calls to u are protected on the network: u is https, or http to this
// machine.
func Trusted(u *url.URL) bool { return u.Scheme == "https" || u.Scheme == "http" && Loopback(u) }

// Loopback reports whether u names this machine.
func Loopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// CheckSecret returns an error if a secret for signing calls is invalid. The error does not contain
// the secret.
func CheckSecret(secret string) error {
	switch {
	case strings.TrimSpace(secret) != secret:
		return errors.New("the secret has white space around it")
	case len(secret) < MinSecret:
		return fmt.Errorf("the secret has less than %d bytes; `openssl rand -hex 32` makes a good one", MinSecret)
	}
	return nil
}

// CheckSecrets checks each secret with CheckSecret. The error names the position of the invalid
// one.
func CheckSecrets(secrets []string) error {
	for i, secret := range secrets {
		if err := CheckSecret(secret); err != nil {
			return fmt.Errorf("secret %d of %d: %w", i+1, len(secrets), err)
		}
	}
	return nil
}

// NewTransport returns a transport with the TLS settings of config, restricted by tlsconfig.Strict.
// config may be nil. The transport keeps up to connections idle connections per host, and reads at
// most maxHeader bytes of a response header.
func NewTransport(config *tls.Config, connections int, maxHeader int64) *http.Transport {
	config = tlsconfig.Strict(config)
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig, t.MaxIdleConnsPerHost, t.MaxResponseHeaderBytes = config, connections, maxHeader
	return t
}

// NewClient returns a client that follows no redirects, because a call is signed for one receiver.
func NewClient(t *http.Transport) http.Client {
	return http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// WithoutURL removes the URL from the error of a call that got no response.
func WithoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return fmt.Errorf("no answer: %w", err)
}
