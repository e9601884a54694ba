//go:build !windows

package main

import (
	"strings"
	"syscall"
	"testing"

	"switchboard/cmd/internal/proctest"
	"switchboard/internal/redistest"
)

// TestTopUnwell: an instance that does not answer needs attention, and --once says it.
func TestTopUnwell(t *testing.T) {
	server := redistest.Start(t)
	environ := []string{"SWITCHBOARD_REDIS=" + server.URL(), "SWITCHBOARD_PEER_SECRET=0123456789abcdef0123456789abcdef"}
	one, two := startBroker(t, environ), startBroker(t, environ)
	eventually(t, "two servers", func() bool { return strings.Count(one.ok(t, "servers"), "\n") == 2 })
	two.Signal(t, syscall.SIGSTOP)
	r := proctest.Run(t, []string{"SWITCHBOARD_URL=" + one.url}, binary, "top", "--once", "--interval=100ms")
	if r.Code != exitFailed || !strings.Contains(r.Stdout, "\tserver_silent\t") || !strings.Contains(r.Stderr, " server_silent\n") {
		t.Errorf("%+v", r)
	}
}
