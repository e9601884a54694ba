package e2e

import (
	"context"
	"os/exec"
	"syscall"
	"testing"

	"switchboard/internal/proc"
)

// keptLines is how much of a process's log a failure shows.
const keptLines = 40

// process is a child of the test.
type process struct{ *proc.Process }

// start runs a command until the end of the test. onLine, unless nil, takes stdout.
func start(t *testing.T, name string, cmd *exec.Cmd, onLine func([]byte)) *process {
	t.Helper()
	p, err := proc.Start(name, cmd, onLine)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("the last words of %s:\n%s", name, p.Tail(keptLines))
		}
	})
	return &process{p}
}

// logged waits for a line with that message and gives one of its fields.
func (p *process) logged(ctx context.Context, t *testing.T, message, field string) string {
	t.Helper()
	value, err := p.Logged(ctx, message, field)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// end sends a signal and waits for the end of the process.
func (p *process) end(ctx context.Context, t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := p.End(ctx, sig); err != nil {
		t.Fatal(err)
	}
}
