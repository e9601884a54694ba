//go:build !windows

package main

import (
	"strings"
	"syscall"
	"testing"

	"switchboard/internal/redistest"
	"switchboard/internal/testbed"
)

// TestTopUnwell: an instance that does not answer needs attention, and --once says it.
func TestTopUnwell(t *testing.T) {
	server := redistest.Start(t)
	environ := []string{"SWITCHBOARD_REDIS=" + server.URL(), "SWITCHBOARD_PEER_SECRET=0123456789abcdef0123456789abcdef"}
	one, two := startBroker(t, environ), startBroker(t, environ)
	top := func() testbed.Result {
		return testbed.Execute(t, []string{"SWITCHBOARD_URL=" + one.url}, binary, "top", "--once", "--interval=100ms")
	}
	eventually(t, "one asks two", func() bool {
		out := top().Stdout
		return strings.Count(out, "\thealthy\t") == 2 && !strings.Contains(out, "\t-\t-\t-\n")
	})
	two.Interrupt(syscall.SIGSTOP)
	r := top()
	if r.Code != exitFailed || !strings.Contains(r.Stdout, "\tserver_silent\t") || !strings.Contains(r.Stderr, " server_silent\n") {
		t.Errorf("%+v", r)
	}
}
