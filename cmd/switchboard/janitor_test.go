package main

import (
	"strings"
	"testing"

	"switchboard/internal/redistest"
	"switchboard/internal/testbed"
)

// TestJanitor: the janitor and its check work on the Redis of brokers.
func TestJanitor(t *testing.T) {
	server := redistest.Start(t)
	environ := []string{"SWITCHBOARD_REDIS=" + server.URL(), "SWITCHBOARD_LOG_FORMAT=json"}
	b := startBroker(t, environ)
	b.ok(t, "state", "set", "room:7", "turn=amy")
	for _, tt := range []struct{ line, want string }{
		{"janitor --once", "the round is complete"}, {"janitor check", "all records agree"}, {"janitor --dead-letters", "printed all dead letters"},
	} {
		r := testbed.Execute(t, environ, binary, strings.Fields(tt.line)...)
		if r.Code != exitOK || !strings.Contains(r.Stderr, tt.want) {
			t.Errorf("%s: %+v", tt.line, r)
		}
	}
}
