package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"

	"switchboard/internal/backend"
)

const (
	maxRedirects = 3
	fetchHeader  = 64 << 10 // bytes of an answer's header
)

// checkRedirect is the CheckRedirect of the http.Client. A redirect must not lead to a URL whose
// answer can be changed in transit, in particular not from https to http.
func checkRedirect(request *http.Request, via []*http.Request) error {
	switch from, to := via[0].URL, request.URL; {
	case len(via) > maxRedirects:
		return errors.New("it redirects too often")
	case !backend.Trusted(to), from.Scheme == "https" && to.Scheme != "https":
		return errors.New("it redirects to a URL whose answer could be changed in transit")
	case !backend.Loopback(from) && to.Host != from.Host && namesPrivateAddress(to):
		return errPrivateAddress
	}
	return nil
}

// errPrivateAddress is returned if an issuer redirects to this machine or its private network.
var errPrivateAddress = errors.New("it redirects to an address inside this network")

// newFetchTransport returns a transport that may connect to any address of the configured host,
// since the operator chose it. Other hosts, after a redirect, must have a public address. The
// transport checks the address after name resolution, since a name can resolve to any address. An
// issuer on the loopback address may redirect anywhere.
func newFetchTransport(configured *url.URL) *http.Transport {
	t := backend.NewTransport(nil, 1, fetchHeader)
	if backend.Loopback(configured) {
		return t
	}
	trusted := []string{hostPort(configured)}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: configured}); err == nil && proxy != nil {
		trusted = append(trusted, hostPort(proxy)) // the proxy resolves names itself, with its own rules
	}
	anyAddress := &net.Dialer{Timeout: fetchTimeout}
	publicOnly := &net.Dialer{Timeout: fetchTimeout, Control: requirePublic}
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if slices.Contains(trusted, addr) {
			return anyAddress.DialContext(ctx, network, addr)
		}
		return publicOnly.DialContext(ctx, network, addr)
	}
	return t
}

// hostPort returns the address that net/http dials for u.
func hostPort(u *url.URL) string {
	port := map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
}

// requirePublic is the Control of a net.Dialer. It receives the resolved address.
func requirePublic(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dial: %w", err)
	}
	if !publicAddress(to.Addr()) {
		return errPrivateAddress
	}
	return nil
}

// namesPrivateAddress reports whether the host of u is an address that is not public. A host name
// may still resolve to one.
func namesPrivateAddress(u *url.URL) bool {
	address, err := netip.ParseAddr(u.Hostname())
	return backend.Loopback(u) || err == nil && !publicAddress(address)
}

// carrierNAT is the network between a provider and its customers (RFC 6598).
var carrierNAT = netip.MustParsePrefix("100.64.0.0/10")

func publicAddress(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsGlobalUnicast() && !a.IsPrivate() && !carrierNAT.Contains(a)
}
