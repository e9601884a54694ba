package auth

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"strings"
)

// Origins are the web pages whose scripts may connect, besides pages of the broker's own host
// name. A browser sends cookies and may be in a private network. Without this check any page could
// connect on behalf of its visitor.
type Origins struct {
	// Patterns are matched without regard to case, `*` as in path.Match. It also matches dots, so
	// "*.example.com" matches "a.b.example.com":
	//
	//	"*.example.com", "localhost:3000"  the host, on any port unless one is named
	//	"https://*.example.com"            the origin as the browser sends it
	//	"null"                             pages without an origin: files, sandboxed frames
	//	"*"                                everything
	Patterns []string
}

// Validate returns an error that names the first pattern that can never match.
func (o Origins) Validate() error {
	for _, p := range o.Patterns {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return fmt.Errorf("origin pattern %q is malformed", p)
		}
	}
	return nil
}

// Allowed reports whether a request with the header values Origin and Host may connect. A request
// without an Origin does not come from a web page and is allowed.
func (o Origins) Allowed(origin, host string) bool {
	if origin == "" {
		return true
	}
	origin = strings.ToLower(origin)
	u, valid := parseOrigin(origin)
	return valid && u.Hostname() != "" && u.Hostname() == hostname(strings.ToLower(host)) || o.Listed(origin)
}

// parseOrigin parses an origin in lower case. RFC 6454 §6.2: it consists of scheme, host and port
// only.
func parseOrigin(origin string) (u *url.URL, valid bool) {
	u, err := url.Parse(origin)
	return u, err == nil && u.Host != "" && origin == u.Scheme+"://"+u.Host
}

// Listed reports whether a pattern matches the header value Origin.
func (o Origins) Listed(origin string) bool {
	origin = strings.ToLower(origin)
	u, valid := parseOrigin(origin)
	for _, p := range o.Patterns {
		switch p = strings.ToLower(p); {
		case p == "*", p == "null" && origin == "null":
			return true
		case !valid:
		case strings.Contains(p, "://"):
			if matchPattern(p, origin) {
				return true
			}
		case matchPattern(p, u.Host), matchPattern(p, u.Hostname()):
			return true
		}
	}
	return false
}

// matchPattern reports whether name matches pattern. A malformed pattern, which Validate reports,
// matches nothing: refusing is safer than allowing.
func matchPattern(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// hostname returns hostport without port and brackets.
func hostname(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
}
