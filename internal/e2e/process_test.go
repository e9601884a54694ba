//go:build long

package e2e

import (
	"context"
	"os/exec"
	"syscall"
	"testing"

	"switchboard/internal/proc"
)

// tailLines is the number of log lines that a failure shows.
const tailLines = 40

// A process is a proc.Process whose errors end the test.
type process struct{ *proc.Process }

// start starts a command that is killed at the end of the test. See proc.Start for onLine.
func start(t testing.TB, name string, cmd *exec.Cmd, onLine func([]byte)) *process {
	t.Helper()
	p, err := proc.Start(name, cmd, onLine)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, p.Tail(tailLines))
		}
	})
	return &process{p}
}

// logged waits for a log line with this message and returns one of its fields.
func (p *process) logged(ctx context.Context, t testing.TB, message, field string) string {
	t.Helper()
	value, err := p.Logged(ctx, message, field)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// end sends a signal and waits until the process ends.
func (p *process) end(ctx context.Context, t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := p.End(ctx, sig); err != nil {
		t.Fatal(err)
	}
}
