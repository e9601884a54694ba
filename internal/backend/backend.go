// Package backend is what calls to the user's backend have in common, whether they tell it something or ask.
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

// MinSecret is the least length of a secret that signs calls, in bytes.
const MinSecret = 16

// CheckURL says what is wrong with the address of an endpoint, and does not repeat it: it may hold a secret.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("want https:// and a host, or http:// and a loopback address")
	case !Trusted(u):
		return errors.New("the scheme must be https: on the way to another machine http can be read and changed")
	}
	return nil
}

// Trusted reports whether nobody on the way to u can read or change a call: it is https, or http to
// this machine.
func Trusted(u *url.URL) bool { return u.Scheme == "https" || u.Scheme == "http" && Loopback(u) }

// Loopback reports whether u names this machine.
func Loopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// CheckSecret says what is wrong with a secret that signs calls, and does not repeat it.
func CheckSecret(secret string) error {
	switch {
	case strings.TrimSpace(secret) != secret:
		return errors.New("the secret has white space around it")
	case len(secret) < MinSecret:
		return fmt.Errorf("the secret has less than %d bytes; `openssl rand -hex 32` makes a good one", MinSecret)
	}
	return nil
}

// CheckSecrets is CheckSecret for all of them; the error says which.
func CheckSecrets(secrets []string) error {
	for i, secret := range secrets {
		if err := CheckSecret(secret); err != nil {
			return fmt.Errorf("secret %d of %d: %w", i+1, len(secrets), err)
		}
	}
	return nil
}

// NewTransport speaks TLS as tlsconfig.Strict allows, whatever config, which may be nil, says. It
// keeps connections, and reads maxHeader bytes of an answer's header at most.
func NewTransport(config *tls.Config, connections int, maxHeader int64) *http.Transport {
	config = tlsconfig.Strict(config)
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig, t.MaxIdleConnsPerHost, t.MaxResponseHeaderBytes = config, connections, maxHeader
	return t
}

// NewClient follows no redirect: a call is signed for who was meant.
func NewClient(t *http.Transport) http.Client {
	return http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// WithoutURL is the error of a call that got no answer, without the address.
func WithoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return fmt.Errorf("no answer: %w", err)
}
