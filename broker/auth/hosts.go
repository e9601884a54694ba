package auth

import (
	"fmt"
	"net/netip"
	"path"
	"strings"
)

// Hosts are the names in a URL under which clients may reach an open broker. A web page can have
// its own name resolve to the address of a broker inside its visitor's network (DNS rebinding). Its
// scripts are then of the broker's origin for the browser, and only the header Host tells. An
// address cannot be rebound, since no name is looked up.
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

// Validate names the first pattern that can never match.
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
		if match(strings.ToLower(p), name) {
			return true
		}
	}
	return false
}

// Refusal tells the caller why Allowed was false.
func (h Hosts) Refusal(host string) string {
	return fmt.Sprintf("this broker is open, and answers under no other name than those in its setting hosts; %.100q is none of them", host)
}
