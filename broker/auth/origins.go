package auth

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"strings"
)

// Origins are the web pages whose scripts may connect, besides those that the
// broker's own host name serves. A browser sends cookies and may sit inside a
// private network, so any page could otherwise connect in its visitor's name.
type Origins struct {
	// Patterns are matched without regard to case, `*` as in path.Match (it passes
	// dots, so "*.example.com" fits "a.b.example.com"):
	//
	//	"*.example.com", "localhost:3000"  the host, on any port unless one is named
	//	"https://*.example.com"            the origin as the browser spells it
	//	"null"                             pages without an origin: files, sandboxed frames
	//	"*"                                everything
	Patterns []string
}

// Validate names the first pattern that can never match.
func (o Origins) Validate() error {
	for _, p := range o.Patterns {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return fmt.Errorf("origin pattern %q is malformed", p)
		}
	}
	return nil
}

// Allowed reports whether a request with the header values Origin and Host may
// connect. Without an Origin it does not come from a web page, and may.
func (o Origins) Allowed(origin, host string) bool {
	if origin == "" {
		return true
	}
	origin = strings.ToLower(origin)
	u, err := url.Parse(origin)
	// RFC 6454 §6.2: scheme, host and port are all there is to an origin.
	whole := err == nil && u.Host != "" && origin == u.Scheme+"://"+u.Host
	if whole && u.Hostname() != "" && u.Hostname() == hostname(strings.ToLower(host)) {
		return true
	}
	for _, p := range o.Patterns {
		switch p = strings.ToLower(p); {
		case p == "*", p == "null" && origin == "null":
			return true
		case !whole:
		case strings.Contains(p, "://"):
			if match(p, origin) {
				return true
			}
		case match(p, u.Host), match(p, u.Hostname()):
			return true
		}
	}
	return false
}

// match is false for a malformed pattern: Validate tells of it, and letting
// everybody in would be the worse mistake.
func match(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// hostname is hostport without port and brackets.
func hostname(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
}
