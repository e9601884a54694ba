//go:build long

package attack

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"switchboard/internal/certtest"
)

// TestWeakSuites checks that the broker refuses a TLS 1.2 client that offers only CBC suites.
func TestWeakSuites(t *testing.T) {
	t.Parallel()
	ca := certtest.New(t)
	pair := ca.Pair()
	onHTTP, _ := openBroker(t, []string{"SWITCHBOARD_TLS_CERT_FILE=" + pair.Cert, "SWITCHBOARD_TLS_KEY_FILE=" + pair.Key})
	dial := func(highest uint16, suites ...uint16) error {
		conn, err := (&tls.Dialer{Config: &tls.Config{
			RootCAs: ca.Pool(), MinVersion: tls.VersionTLS10, MaxVersion: highest, CipherSuites: suites,
		}}).DialContext(t.Context(), "tcp", onHTTP)
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	for _, weak := range []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256,
	} {
		if err := dial(tls.VersionTLS12, weak); err == nil {
			t.Errorf("%s is accepted", tls.CipherSuiteName(weak))
		}
	}
	if err := dial(tls.VersionTLS11); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
	for _, good := range []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256} {
		if err := dial(tls.VersionTLS12, good); err != nil {
			t.Errorf("%s: %v", tls.CipherSuiteName(good), err)
		}
	}
	if err := dial(tls.VersionTLS13); err != nil {
		t.Errorf("TLS 1.3: %v", err)
	}
}

// TestIssuerRedirectsToLocalService checks that the broker does not call a local service of its
// machine when the server with the token keys redirects to it.
func TestIssuerRedirectsToLocalService(t *testing.T) {
	t.Parallel()
	ca := certtest.New(t)
	serve := func(h http.HandlerFunc, names ...string) (*httptest.Server, string) {
		t.Helper()
		pair := ca.Pair(names...)
		certificate, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewUnstartedServer(h)
		s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
		s.StartTLS()
		t.Cleanup(s.Close)
		_, port, err := net.SplitHostPort(s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return s, port
	}
	var calls atomic.Int32
	_, port := serve(func(http.ResponseWriter, *http.Request) { calls.Add(1) }, "localhost")
	var target atomic.Pointer[string]
	issuer, _ := serve(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, *target.Load(), http.StatusFound)
	}, "issuer.example")
	// The proxy connects the broker to the issuer, whose name does not resolve.
	proxy := httptest.NewServer(proxyTo(issuer.Listener.Addr().String()))
	defer proxy.Close()
	for _, to := range []string{"https://127.0.0.1:" + port + "/admin", "https://localhost:" + port + "/admin"} {
		target.Store(&to)
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		cmd := exec.CommandContext(ctx, brokerPath, "check", "--channel", "news", "--token", "any")
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "SWITCHBOARD_AUTH_JWKS_URL=https://issuer.example/keys",
			"SSL_CERT_FILE=" + ca.File, "SSL_CERT_DIR=" + filepath.Dir(ca.File), "HTTPS_PROXY=" + proxy.URL,
		}
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		err := cmd.Run()
		cancel()
		if _, exited := errors.AsType[*exec.ExitError](err); !exited || !strings.Contains(stderr.String(), "it redirects to an address inside this network") {
			t.Errorf("%s: %v, %s", to, err, &stderr)
		}
	}
	if n := calls.Load(); n > 0 {
		t.Errorf("the local service was called %d times", n)
	}
}

// proxyTo returns a proxy that connects all requests to one address.
func proxyTo(address string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		upstream, err := net.Dial("tcp", address)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			_ = upstream.Close()
			return
		}
		_, _ = fmt.Fprint(client, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			_, _ = io.Copy(upstream, client)
			_ = upstream.Close()
		}()
		_, _ = io.Copy(client, upstream)
		_ = client.Close()
	}
}
