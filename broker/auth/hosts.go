package auth

import (
	"fmt"
	"net/netip"
	"path"
	"strings"
)

// Hosts are the host names under which clients without a key or a token may reach a broker. They
// protect from DNS rebinding: the name of a malicious web site can resolve to the address of a
// broker in the private network of a visitor. The browser then treats the broker as part of that
// site, and only the header Host shows the difference. An IP address in a URL is safe, since no
// name is resolved.
//
// Loopback addresses and localhost are always allowed.
type Hosts struct {
	// Patterns are matched without regard to case and port, `*` as in path.Match:
	// "push.example.com", "*.example.com".
	Patterns []string
	// Addresses allows every IP address, for a broker that does not listen on the loopback address
	// alone.
	Addresses bool
}

// Validate returns an error that names the first pattern that can never match.
func (h Hosts) Validate() error {
	for _, p := range h.Patterns {
		if _, err := path.Match(p, ""); err != nil || p == "" || strings.ContainsAny(p, "/:") {
			return fmt.Errorf("pattern %q is malformed; want a name without a port, like push.example.com", p)
		}
	}
	return nil
}

// Allowed reports whether a request with the header value Host may be answered.
func (h Hosts) Allowed(host string) bool {
	name := hostname(strings.ToLower(host))
	if name == "localhost" {
		return true
	}
	if address, err := netip.ParseAddr(name); err == nil {
		return h.Addresses || address.Unmap().IsLoopback()
	}
	for _, p := range h.Patterns {
		if matchPattern(strings.ToLower(p), name) {
			return true
		}
	}
	return false
}

// Refusal returns a text for a client whose Host is not allowed.
func (h Hosts) Refusal(host string) string {
	return fmt.Sprintf("no key or token is needed here, so the broker answers only to the names in its setting hosts; %.100q is not one of them", host)
}
