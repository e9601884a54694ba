package redisurl

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// kind is the kind of deployment.
type kind int

const (
	single kind = iota
	sentinel
	cluster
)

var schemes = map[string]struct {
	kind kind
	tls  bool
}{
	"redis": {single, false}, "rediss": {single, true},
	"redis-sentinel": {sentinel, false}, "rediss-sentinel": {sentinel, true},
	"redis-cluster": {cluster, false}, "rediss-cluster": {cluster, true},
}

// refused is the parameters of go-redis that are not allowed.
var refused = []string{
	"max_retries", "context_timeout_enabled", // an interrupted command may have run
	"read_only", "replica_only", "route_by_latency", "route_by_latency_tolerance",
	"route_randomly", "use_disconnected_replicas", // replicas lag behind
	"addr", "master_name", "username", "password", // belong before the query
}

// target is a parsed URL.
type target struct {
	kind           kind
	tls            bool
	user, password string
	hosts          []string // host:port, at least one
	path           string   // database or name of the master, without enclosing slashes
	query          url.Values

	sentinelUser, sentinelPassword string

	config func() *tls.Config // called for each connection; nil: go-redis derives the configuration from the URL
}

// parse parses raw without net/url, which refuses some lists of hosts and repeats the whole URL in
// its errors. No error of parse contains a part of user or password.
func parse(raw string) (target, error) {
	scheme, rest, found := strings.Cut(raw, "://")
	s, known := schemes[strings.ToLower(scheme)]
	if !found || !known {
		return target{}, errors.New("scheme: want redis://, redis-sentinel:// or redis-cluster://, with rediss for TLS")
	}
	t := target{kind: s.kind, tls: s.tls}
	// The last @, not the first slash, ends the user part: a password with an unescaped slash must
	// not appear as the path in an error.
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if err := t.setUser(rest[:at]); err != nil {
			return target{}, err
		}
		rest = rest[at+1:]
	}
	if strings.Contains(rest, "#") {
		return target{}, errors.New("a # is not allowed, write %23")
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, path, _ := strings.Cut(rest, "/")
	if err := t.setHosts(hosts); err != nil {
		return target{}, err
	}
	if err := t.setPath(path); err != nil {
		return target{}, err
	}
	return t, t.setQuery(query)
}

func (t *target) setUser(part string) error {
	if strings.ContainsAny(part, "/?#") {
		return errors.New("user and password: the characters / ? # must be percent-encoded, and @ after the host too")
	}
	user, password, _ := strings.Cut(part, ":")
	var userErr, passwordErr error
	t.user, userErr = url.PathUnescape(user)
	t.password, passwordErr = url.PathUnescape(password)
	if userErr != nil || passwordErr != nil {
		return errors.New("user and password: a % must be followed by two hexadecimal digits, write %25 for the sign itself")
	}
	if t.user != "" && t.password == "" {
		return errors.New("user and password: there is no password, write :password@ for a password alone")
	}
	return nil
}

func (t *target) setHosts(part string) error {
	port := "6379"
	if t.kind == sentinel {
		port = "26379"
	}
	for hostport := range strings.SplitSeq(part, ",") {
		host, p, err := net.SplitHostPort(hostport)
		if err != nil { // no port, or malformed: then the second call fails too
			host, p, err = net.SplitHostPort(hostport + ":" + port)
		}
		if err != nil || host == "" || strings.ContainsAny(host, " \t\r\n%") {
			return fmt.Errorf("host %q: want host or host:port", hostport)
		}
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("host %q: port %q is not between 1 and 65535", hostport, p)
		}
		t.hosts = append(t.hosts, net.JoinHostPort(host, p))
	}
	if t.kind == single && len(t.hosts) > 1 {
		return errors.New("hosts: redis:// is one server, more of them need redis-sentinel:// or redis-cluster://")
	}
	return nil
}

func (t *target) setPath(part string) error {
	var err error
	if t.path, err = url.PathUnescape(strings.Trim(part, "/")); err != nil {
		return fmt.Errorf("path %q: a %% must be followed by two hexadecimal digits", part)
	}
	switch {
	case t.kind == cluster && t.path != "":
		return fmt.Errorf("path %q: a Cluster has only database 0, leave it out", t.path)
	case t.kind == sentinel && t.path == "":
		return errors.New("path: the name of the master is missing, want redis-sentinel://host:port/name")
	case t.kind == single && t.path != "":
		if _, err := strconv.Atoi(t.path); err != nil {
			return fmt.Errorf("path %q: the database is a number", t.path)
		}
	}
	return nil
}

func (t *target) setQuery(part string) error {
	query, err := url.ParseQuery(part)
	if err != nil {
		return errors.New("query: malformed, want name=value&name=value") // err may contain a password
	}
	for _, name := range refused {
		if query.Has(name) {
			return fmt.Errorf("query: %s cannot be set here", name)
		}
	}
	if t.kind == sentinel {
		t.sentinelUser, t.sentinelPassword = query.Get("sentinel_username"), query.Get("sentinel_password")
		query.Del("sentinel_username")
		query.Del("sentinel_password")
		query.Set("master_name", t.path)
	}
	t.query = query
	return nil
}

// goRedisURL returns the URL in the form that go-redis parses, without user and password.
func (t *target) goRedisURL() string {
	u := url.URL{Scheme: "redis", Host: t.hosts[0]}
	if t.tls {
		u.Scheme = "rediss"
	}
	if t.kind == single {
		u.Path = "/" + t.path
	}
	for _, host := range t.hosts[1:] {
		t.query.Add("addr", host)
	}
	u.RawQuery = t.query.Encode()
	return u.String()
}
