package broker

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"switchboard/broker/auth"
	"switchboard/internal/wire"
)

// openHTTP reports whether something on the HTTP port is open: /v1 without API keys, /ws without
// token keys.
func (o Options) openHTTP() bool { return o.Keys.Open() || o.Tokens.Open() }

// openTCP reports whether the TCP port is open, where only clients connect.
func (o Options) openTCP() bool { return o.Tokens.Open() }

// hosts are Hosts, the names that the broker listens on, and the one that it advertises: other
// instances and the janitor call that. An Insecure broker is also reached under its addresses.
func (o Options) hosts() auth.Hosts {
	names := slices.Clone(o.Hosts.Patterns)
	for _, address := range []string{o.HTTP, o.TCP, o.Advertise} {
		if name, _, err := net.SplitHostPort(address); err == nil {
			names = append(names, name)
		}
	}
	if !strings.Contains(o.Advertise, "{{") { // a template gives an address
		names = append(names, o.Advertise) // a host alone
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	return auth.Hosts{Patterns: names, Addresses: o.Hosts.Addresses || o.Insecure}
}

// knownHosts has h answer only requests to the hosts that o allows, while the port is open.
func (o Options) knownHosts(h http.Handler) http.Handler {
	if !o.openHTTP() {
		return h
	}
	hosts := o.hosts()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hosts.Allowed(r.Host) {
			refusal := map[string]any{"code": wire.Forbidden, "message": hosts.Refusal(r.Host)}
			answer(w, http.StatusForbidden, map[string]any{"error": refusal})
			return
		}
		h.ServeHTTP(w, r)
	})
}

// refuseHost is transport.Limits.Host: why a handshake on the TCP port is refused.
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
