package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// issuerAt returns a Remote for https://example.com/keys, and a function that makes that URL
// redirect to another one.
func issuerAt(t *testing.T) (r *Remote, redirect func(to string)) {
	t.Helper()
	var to atomic.Pointer[string]
	issuer := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if target := *to.Load(); r.URL.Path == "/keys" && target != "" {
			http.Redirect(w, r, target, http.StatusFound)
			return
		}
		_, _ = fmt.Fprint(w, `{"keys":[]}`)
	}))
	t.Cleanup(issuer.Close)
	r, err := NewRemote(RemoteOptions{URL: "https://example.com/keys"})
	if err != nil {
		t.Fatal(err)
	}
	transport := r.client.Transport.(*http.Transport)
	transport.Proxy = nil
	transport.TLSClientConfig.RootCAs = issuer.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == "example.com:443" {
			addr, dial := issuer.Listener.Addr().String(), (&net.Dialer{}).DialContext
			return dial(ctx, network, addr)
		}
		return dial(ctx, network, addr)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return r, func(target string) { to.Store(&target) }
}

// TestRedirectToPrivateAddress checks that redirects to this machine or its network are not
// followed.
func TestRedirectToPrivateAddress(t *testing.T) {
	var calls atomic.Int32
	inner := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	inner.Config.ConnState = func(net.Conn, http.ConnState) { calls.Add(1) }
	inner.StartTLS()
	defer inner.Close()
	_, port, err := net.SplitHostPort(inner.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	r, redirect := issuerAt(t)
	for _, to := range []string{
		"https://127.0.0.1:" + port + "/", "https://localhost:" + port + "/", "https://LOCALHOST:" + port + "/",
		"https://[::ffff:127.0.0.1]:" + port + "/", "https://127.0.0.1:" + port + "/keys?" + "https://example.com",
		"https://10.0.0.1/", "https://192.168.1.1/", "https://169.254.169.254/", "https://100.64.0.1/", "https://[fd00::1]/", "https://[fe80::1]/", "https://0.0.0.0:" + port + "/",
	} {
		redirect(to)
		if _, err := r.fetch(t.Context()); !errors.Is(err, errPrivateAddress) {
			t.Errorf("%s: %v", to, err)
		}
	}
	for _, to := range []string{"http://example.com/keys2", "http://127.0.0.1:" + port + "/", "http://localhost:" + port + "/"} {
		redirect(to)
		if _, err := r.fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "changed in transit") {
			t.Errorf("%s: %v", to, err)
		}
	}
	redirect("/keys2") // on the configured host
	if _, err := r.fetch(t.Context()); err != nil {
		t.Error(err)
	}
	if n := calls.Load(); n > 0 {
		t.Errorf("%d connections to the private network", n)
	}
}

// TestDialPrivateAddress checks that requirePublic refuses a name that resolves to a private
// address.
func TestDialPrivateAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for configured, want := range map[string]error{
		"https://issuer.example/keys":           errPrivateAddress,
		"https://localhost:" + port + "/keys":   nil,
		"https://ip6-localhost.example:" + port: errPrivateAddress,
	} {
		u, err := url.Parse(configured)
		if err != nil {
			t.Fatal(err)
		}
		c, err := newFetchTransport(u).DialContext(t.Context(), "tcp", "localhost:"+port)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", configured, err, want)
		}
		if c != nil {
			_ = c.Close()
		}
	}
	// An operator may configure an issuer in the private network.
	if named := hostPort(&url.URL{Scheme: "https", Host: "issuer.internal"}); named != "issuer.internal:443" {
		t.Error(named)
	}
}

func TestPublicAddress(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "2001:4860:4860::8888": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "::1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.0.1": false, "100.64.0.1": false,
		"169.254.169.254": false, "fe80::1": false, "fd00::1": false, "0.0.0.0": false, "::": false, "224.0.0.1": false,
		"255.255.255.255": false, "::ffff:10.0.0.1": false,
	} {
		if got := publicAddress(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
