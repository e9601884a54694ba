package broker

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"switchboard/broker/auth"
	"switchboard/internal/wire"
)

// openHTTP reports whether a part of the HTTP port is open to all callers: /v1 without API keys, or
// /ws without token keys.
func (o Options) openHTTP() bool { return o.Access.Keys.Open() || o.Access.Tokens.Open() }

// openTCP reports whether the TCP port is open to all clients.
func (o Options) openTCP() bool { return o.Access.Tokens.Open() }

// hosts returns the host names that clients may use: those of Hosts, the names that the broker
// listens on, and the name that it advertises, which other servers and the janitor use. An Insecure
// broker may also be reached by IP address.
func (o Options) hosts() auth.Hosts {
	names := slices.Clone(o.Access.Hosts.Patterns)
	for _, address := range []string{o.Listen.HTTP, o.Listen.TCP, o.Links.Advertise} {
		if name, _, err := net.SplitHostPort(address); err == nil {
			names = append(names, name)
		}
	}
	if !strings.Contains(o.Links.Advertise, "{{") { // a template yields an address, not a name
		names = append(names, o.Links.Advertise) // it may be a host without a port
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	return auth.Hosts{Patterns: names, Addresses: o.Access.Hosts.Addresses || o.Access.Insecure}
}

// onlyKnownHosts refuses requests for other host names than hosts while the port is open to all
// callers. It protects against DNS rebinding.
func (o Options) onlyKnownHosts(h http.Handler) http.Handler {
	if !o.openHTTP() {
		return h
	}
	hosts := o.hosts()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hosts.Allowed(r.Host) {
			refusal := map[string]any{"code": wire.Forbidden, "message": hosts.Refusal(r.Host)}
			writeJSON(w, http.StatusForbidden, map[string]any{"error": refusal})
			return
		}
		h.ServeHTTP(w, r)
	})
}

// refuseHost implements transport.Limits.Host: the function returns why a handshake on the TCP port
// is refused, "" if it is not. Nil permits all hosts.
func (o Options) refuseHost() func(host string) string {
	if !o.openTCP() {
		return nil
	}
	hosts := o.hosts()
	return func(host string) string {
		if hosts.Allowed(host) {
			return ""
		}
		return hosts.Refusal(host)
	}
}
