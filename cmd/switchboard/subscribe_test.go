package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestSubscribe subscribes users and clients, and issues a token that does so.
func TestSubscribe(t *testing.T) {
	b := startBroker(t, nil)
	b.steps(t, []step{
		{line: "subscribe team:7 team:8 --user alice --client bob/phone", want: "for\talice\nconnected\t0\n"},
		{line: "subscribe team:7 --user alice --after 0 --json", want: `{"user":"alice","clients":0,"refused":[],"until":`},
		{line: "unsubscribe team:7 --client bob/phone", want: "for\tbob/phone\nconnected\t0\n"},
		{line: "unsubscribe team:8 --user alice --json", want: `{"user":"alice","clients":0,"refused":[],"until":`},
		{line: "subscribe team:7", code: exitUsage},
		{line: "subscribe --user alice", code: exitUsage},
		{line: "unsubscribe team:7", code: exitUsage},
		{line: "subscribe $all --user alice", code: exitForbidden},
		{line: "subscribe a b --after 5 --user alice", code: exitUsage},
	})
}

// TestTokenSubscribe issues a token whose claim subscribes its connections, and uses it.
func TestTokenSubscribe(t *testing.T) {
	dir := t.TempDir()
	file, secret := filepath.Join(dir, "b.yaml"), filepath.Join(dir, "secret")
	write(t, file, "namespaces:\n  \"team:*\": {}\n")
	write(t, secret, strings.Repeat("s", 32))
	b := startBroker(t, []string{"SWITCHBOARD_AUTH_HS256_SECRET_FILE=" + secret}, "--config", file)
	token := strings.TrimSpace(b.ok(t, "token", "issue", "--user=alice", "--signing-key", secret, "--subscribe", "team:7", "--subscribe", "team:8"))
	if shown := b.ok(t, "token", "decode", token); !strings.Contains(shown, "team:7") || !strings.Contains(shown, "team:8") {
		t.Errorf("decoded %s", shown)
	}
	b.steps(t, []step{
		{line: "check team:8 --token -", stdin: token + "\n", want: "subscribe\tyes\t"},
		{line: "check team:9 --token -", stdin: token + "\n", want: "subscribe\tno\t"},
	})
}
