package main

import (
	"path/filepath"
	"strings"
	"testing"

	"switchboard/client"
	"switchboard/internal/testbed"
)

// TestCompleteNames: arguments and flags are completed by names of the broker, and of profiles.
func TestCompleteNames(t *testing.T) {
	b := startBroker(t, kitEnviron)
	b.connect(t, client.Options{User: "alice", Client: "phone"}, "news")
	b.connect(t, client.Options{User: "bob", Client: "tab"}, "sports")
	b.ok(t, "room", "create", "default", "--id", "r7")
	profiles := filepath.Join(t.TempDir(), "profiles.yaml")
	write(t, profiles, "profiles:\n  dev: {url: \"http://dev:1\"}\n  prod: {url: \"http://prod:1\"}\n")
	environ := []string{"SWITCHBOARD_URL=" + b.url, "SWITCHBOARD_PROFILES=" + profiles}
	// The shells call the command like this. The last argument is what the user has typed of it.
	for line, want := range map[string]string{
		"tail ne":                 "news",
		"history ␣":               "news sports",
		"connect ␣":               "news sports",
		"channels s":              "sports",
		"state get ␣":             "news sports",
		"push --user ␣":           "alice bob",
		"push --client ␣":         "alice/phone bob/tab",
		"check news --user ␣":     "alice bob",
		"who ␣":                   "alice bob",
		"who --channel ␣":         "news sports",
		"disconnect ␣":            "alice bob",
		"disconnect --client ␣":   "alice/phone bob/tab",
		"queue ␣":                 "alice/phone bob/tab",
		"token issue --user ␣":    "alice bob",
		"room get ␣":              "r7",
		"room list --owner ␣":     "alice bob",
		"room reserve r7 ␣":       "alice bob",
		"who --profile ␣":         "dev prod",
		"profile use ␣":           "dev prod",
		"profile remove prod ␣":   "",
		"top --sort ␣":            "server connections pushes deliveries",
		"servers ␣":               "",
		"history news --profil":   "--profile",
		"hist":                    "history",
		"who --profile=missing ␣": "",
	} {
		args := []string{"__complete"}
		for _, arg := range strings.Fields(line) {
			args = append(args, strings.ReplaceAll(arg, "␣", ""))
		}
		r := testbed.Execute(t, environ, binary, args...)
		var got []string
		for candidate := range strings.Lines(r.Stdout) {
			if name, _, _ := strings.Cut(strings.TrimSpace(candidate), "\t"); !strings.HasPrefix(name, ":") {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
