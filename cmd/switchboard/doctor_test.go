package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"switchboard/client/backend"
	"switchboard/internal/redistest"
	"switchboard/internal/testbed"
)

// TestDoctor kills a broker: another one, also one that was started later, knows it from Redis. It
// also sees when no janitor runs.
func TestDoctor(t *testing.T) {
	server := redistest.Start(t)
	environ := []string{"SWITCHBOARD_REDIS=" + server.URL(), "SWITCHBOARD_LOG_FORMAT=json", "SWITCHBOARD_PEER_SECRET=0123456789abcdef0123456789abcdef"}
	one, two := startBroker(t, environ), startBroker(t, environ)
	codes := func(b broker) string {
		var list []string
		r := b.cli(t, "doctor", "--json")
		var report backend.HealthReport
		if err := json.Unmarshal([]byte(r.Stdout), &report); err != nil || (r.Code == exitFailed) != (report.Status == problem) {
			t.Fatalf("%+v, %v", r, err)
		}
		for _, f := range report.Findings {
			list = append(list, f.Code)
		}
		return strings.Join(list, " ")
	}
	eventually(t, "two servers", func() bool { return strings.Count(one.ok(t, "servers"), "\n") == 2 })
	if got := codes(one); got != "janitor_absent" {
		t.Errorf("without a janitor: %s", got)
	}
	two.Interrupt(syscall.SIGKILL)
	janitor := testbed.RunCommand(t, environ, binary, "janitor", "--servers-every=200ms")
	eventually(t, "the death of a server", func() bool { return codes(one) == "server_died" })
	three := startBroker(t, environ)
	if got := codes(three); got != "server_died" {
		t.Errorf("a broker that was started later: %s", got)
	}
	if r := one.cli(t, "doctor"); r.Code != exitOK || !strings.HasPrefix(r.Stdout, "warning\tserver_died\t") {
		t.Errorf("%+v", r)
	}
	janitor.Interrupt(syscall.SIGTERM)
	eventually(t, "the end of the janitor", func() bool { return codes(one) == "janitor_absent server_died" })
}
