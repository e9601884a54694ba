package auth

import (
	"strings"
	"testing"
)

func TestHostsAllowed(t *testing.T) {
	listed := Hosts{Patterns: []string{"Push.Example.com", "*.internal.example"}}
	withAddresses := Hosts{Patterns: listed.Patterns, Addresses: true}
	for _, c := range []struct {
		host                  string
		listed, withAddresses bool
	}{
		{"localhost", true, true},
		{"LocalHost:8080", true, true},
		{"127.0.0.1", true, true},
		{"127.8.9.1:65535", true, true},
		{"[::1]", true, true},
		{"[::1]:8080", true, true},
		{"[::ffff:127.0.0.1]:1", true, true},
		{"push.example.com", true, true},
		{"PUSH.example.com:443", true, true},
		{"a.b.internal.example", true, true},
		{"192.168.1.5:8080", false, true},
		{"8.8.8.8", false, true},
		{"[fd00::1]:8080", false, true},
		{"0.0.0.0", false, true},
		{"evil.example", false, false},
		{"evil.example:8080", false, false},
		{"push.example.com.evil.example", false, false},
		{"internal.example", false, false},
		{"localhost.evil.example", false, false},
		{"127.0.0.1.evil.example", false, false},
		{"127.1", false, false}, // browsers send 127.0.0.1
		{"2130706433", false, false},
		{"localhost@evil.example", false, false},
		{"", false, false},
		{":8080", false, false},
		{"[]", false, false},
	} {
		if got := listed.Allowed(c.host); got != c.listed {
			t.Errorf("%q: %v", c.host, got)
		}
		if got := withAddresses.Allowed(c.host); got != c.withAddresses {
			t.Errorf("%q with addresses: %v", c.host, got)
		}
	}
	if text := listed.Refusal(strings.Repeat("x", 1000)); len(text) > 300 || !strings.Contains(text, "setting hosts") {
		t.Error(text)
	}
}

func TestHostsValidate(t *testing.T) {
	for pattern, ok := range map[string]bool{
		"push.example.com": true, "*.example.com": true, "*": true,
		"": false, "push.example.com:8080": false, "https://push.example.com": false, "a/b": false, "[a": false, "[::1]": false,
	} {
		if err := (Hosts{Patterns: []string{"fine", pattern}}).Validate(); (err == nil) != ok {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}
