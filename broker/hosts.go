package broker

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"switchboard/broker/auth"
	"switchboard/broker/transport"
	"switchboard/internal/wire"
)

// openHTTP reports whether a part of the HTTP port is open to all callers: /v1 without API keys, or
// /ws without token keys.
func (o Options) openHTTP() bool { return o.Access.Keys.Open() || o.Access.Tokens.Open() }

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
func (b *Broker) onlyKnownHosts(h http.Handler) http.Handler {
	if !b.opts.openHTTP() {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if message := b.refuseHost(r.Host); message != "" {
			refusal := map[string]any{"code": wire.Forbidden, "message": message}
			writeJSON(w, http.StatusForbidden, map[string]any{"error": refusal})
			return
		}
		h.ServeHTTP(w, r)
	})
}

// refusePage implements transport.Limits.Page: it returns why a connection of a page is refused, ""
// if it is not. It logs refusals.
func (b *Broker) refusePage(p transport.Page) string {
	if refusal := b.refuseOrigin(p); refusal != "" {
		return refusal
	}
	switch a := b.opts.Access; {
	case a.Tokens.Open():
		return b.refuseHost(p.Host)
	case a.Anonymous:
		return b.refuseRebound(p)
	}
	return ""
}

// refuseRequest is refusePage for an HTTP call that needs no API key.
func (b *Broker) refuseRequest(r *http.Request) string {
	p := transport.PageOf(r)
	if refusal := b.refuseOrigin(p); refusal != "" {
		return refusal
	}
	p.Silent = p.Silent && r.Header.Get("Authorization") == ""
	return b.refuseRebound(p)
}

// refuseHost returns why a request to that host is refused, "" if it is not.
func (b *Broker) refuseHost(host string) string {
	if b.hosts.Allowed(host) {
		return ""
	}
	return b.hosts.Refusal(host)
}

// refuseRebound returns why a request is refused that may come from a page whose host name resolves
// to the broker's address by DNS rebinding, "" if it is not. Such a page has an http URL with a
// name, since no malicious site has a certificate for the name of the broker, and its origin is not
// listed. Clients that are not browsers send no Origin.
func (b *Broker) refuseRebound(p transport.Page) string {
	hosts := b.hosts
	hosts.Addresses = true // an address in a URL is not resolved
	switch {
	case p.Secure, strings.HasPrefix(p.Origin, "https://"), p.Origin == "" && !p.Silent,
		p.Origin != "" && b.opts.Access.Origins.Listed(p.Origin), hosts.Allowed(p.Host):
		return ""
	}
	b.limited.Warn("a request is refused: its host is not one of the setting hosts", func(e *zerolog.Event) {
		e.Str("host", p.Host[:min(len(p.Host), maxLoggedOrigin)])
	})
	return hosts.Refusal(p.Host)
}
