// Package backend is what calls to the user's backend have in common, whether they tell it something or ask.
package backend

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// CheckURL says what is wrong with the address of an endpoint, and does not repeat it: it may hold a secret.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("want http:// or https:// and a host")
	}
	return nil
}

// CheckSecrets says which of the secrets that sign the calls is none, likewise.
func CheckSecrets(secrets []string) error {
	for i, secret := range secrets {
		if secret == "" || strings.TrimSpace(secret) != secret {
			return fmt.Errorf("secret %d of %d is empty or has white space around it", i+1, len(secrets))
		}
	}
	return nil
}

// NewTransport speaks TLS 1.2 at least, whatever config, which may be nil, says. It keeps connections, and reads maxHeader
// bytes of an answer's header at most.
func NewTransport(config *tls.Config, connections int, maxHeader int64) *http.Transport {
	if config = config.Clone(); config == nil {
		config = &tls.Config{}
	}
	config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
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
