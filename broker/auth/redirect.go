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

// checkRedirect is an http.Client's. A redirect must not lead to where the keys can be changed on
// their way, and never from https to http.
func checkRedirect(request *http.Request, via []*http.Request) error {
	switch from, to := via[0].URL, request.URL; {
	case len(via) > maxRedirects:
		return errors.New("it redirects too often")
	case !backend.Trusted(to), from.Scheme == "https" && to.Scheme != "https":
		return errors.New("it redirects to where the keys could be changed on their way")
	case !backend.Loopback(from) && to.Host != from.Host && inside(to):
		return errInside
	}
	return nil
}

// errInside is returned for an issuer that would have the broker call this machine or its network.
var errInside = errors.New("it redirects to an address inside this network")

// newFetchTransport connects to the host of configured wherever that is: the operator named it. Of
// other hosts, to which it may redirect, the address must be public. That is checked when the name
// is resolved, since a name can resolve to any address. An issuer on the loopback address is part
// of this machine, and may redirect anywhere.
func newFetchTransport(configured *url.URL) *http.Transport {
	t := backend.NewTransport(nil, 1, fetchHeader)
	if backend.Loopback(configured) {
		return t
	}
	named := []string{hostPort(configured)}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: configured}); err == nil && proxy != nil {
		named = append(named, hostPort(proxy)) // it resolves names itself, and has rules of its own
	}
	free := &net.Dialer{Timeout: fetchTimeout}
	guarded := &net.Dialer{Timeout: fetchTimeout, Control: onlyPublic}
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if slices.Contains(named, addr) {
			return free.DialContext(ctx, network, addr)
		}
		return guarded.DialContext(ctx, network, addr)
	}
	return t
}

// hostPort returns what net/http dials for u.
func hostPort(u *url.URL) string {
	port := map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
}

// onlyPublic is a net.Dialer's Control; address is resolved.
func onlyPublic(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dial: %w", err)
	}
	if !publicAddress(to.Addr()) {
		return errInside
	}
	return nil
}

// inside reports whether u names, as it stands, an address that is not public. A name may still
// resolve to one.
func inside(u *url.URL) bool {
	address, err := netip.ParseAddr(u.Hostname())
	return backend.Loopback(u) || err == nil && !publicAddress(address)
}

// carrier is the network between a provider and its customers (RFC 6598).
var carrier = netip.MustParsePrefix("100.64.0.0/10")

func publicAddress(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsGlobalUnicast() && !a.IsPrivate() && !carrier.Contains(a)
}
