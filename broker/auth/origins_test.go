package auth

import "testing"

func TestOriginsAllowed(t *testing.T) {
	for _, c := range []struct {
		name, origin, host string
		patterns           []string
		want               bool
	}{
		{"no browser", "", "push.example.com", nil, true},
		{"same host", "https://push.example.com", "push.example.com", nil, true},
		{"same host, other ports", "http://localhost:3000", "localhost:8080", nil, true},
		{"same host, other case", "https://Push.Example.com", "push.example.COM:443", nil, true},
		{"same host, IPv6", "http://[::1]:3000", "[::1]:8080", nil, true},
		{"same host, IPv6 without port", "http://[::1]", "[::1]", nil, true},
		{"other host", "https://evil.example", "push.example.com", nil, false},
		{"suffix of the host", "https://evilpush.example.com", "push.example.com", nil, false},
		{"no host", "https://", "", nil, false},
		{"not an origin but a URL with a path", "https://push.example.com/x", "push.example.com", nil, false},
		{"user part", "https://push.example.com@evil.example", "push.example.com", nil, false},
		{"user part before", "https://evil.example@push.example.com", "push.example.com", nil, false},
		{"query", "https://evil.example?push.example.com", "push.example.com", []string{"*push.example.com"}, false},

		{"listed", "https://app.example.com", "push.example.com", []string{"app.example.com"}, true},
		{"listed, any port", "https://app.example.com:8443", "x", []string{"app.example.com"}, true},
		{"listed port", "http://localhost:3000", "x", []string{"localhost:3000"}, true},
		{"port not listed", "http://localhost:3001", "x", []string{"localhost:3000"}, false},
		{"sub-domain", "https://a.b.example.com", "x", []string{"*.example.com"}, true},
		{"not a sub-domain", "https://example.com", "x", []string{"*.example.com"}, false},
		{"trick", "https://app.example.com.evil.example", "x", []string{"*.example.com", "app.example.com"}, false},
		{"case of the pattern", "https://app.example.com", "x", []string{"App.Example.com"}, true},
		{"IPv6 listed", "http://[::1]:3000", "x", []string{"::1"}, true},

		{"scheme", "https://app.example.com", "x", []string{"https://*.example.com"}, true},
		{"wrong scheme", "http://app.example.com", "x", []string{"https://*.example.com"}, false},
		{"scheme, unlisted port", "https://app.example.com:8443", "x", []string{"https://app.example.com"}, false},
		{"extension", "chrome-extension://abcdef", "x", []string{"chrome-extension://abcdef"}, true},

		{"everything", "https://evil.example", "x", []string{"*"}, true},
		{"everything, null too", "null", "x", []string{"*"}, true},
		{"null", "null", "x", []string{"n*", "app.example.com"}, false},
		{"null is not a host", "null", "null", nil, false},
		{"null listed", "null", "x", []string{"null"}, true},
		{"malformed pattern", "https://a", "x", []string{"[a"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := (Origins{Patterns: c.patterns}).Allowed(c.origin, c.host); got != c.want {
				t.Errorf("%q at %q with %q: %v", c.origin, c.host, c.patterns, got)
			}
		})
	}
}

func TestOriginsValidate(t *testing.T) {
	if err := (Origins{Patterns: []string{"*", "null", "https://*.example.com", "localhost:3000"}}).Validate(); err != nil {
		t.Error(err)
	}
	for _, p := range []string{"", "[a", `a\`} {
		if (Origins{Patterns: []string{p}}).Validate() == nil {
			t.Errorf("%q passes", p)
		}
	}
}

func FuzzAllowed(f *testing.F) {
	f.Add("https://app.example.com:8443", "push.example.com:443", "*.example.com")
	f.Add("http://[::1]:1", "[::1", "https://[")
	f.Add("null", "", "null")
	f.Fuzz(func(t *testing.T, origin, host, pattern string) {
		got := Origins{Patterns: []string{pattern}}.Allowed(origin, host)
		if !got && (origin == "" || pattern == "*") {
			t.Fatalf("%q at %q with %q is refused", origin, host, pattern)
		}
		if got && pattern == "" && host == "" && origin != "" {
			t.Fatalf("%q is allowed without a pattern or host", origin)
		}
	})
}
