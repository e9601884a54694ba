package redistest

import (
	"context"
	"syscall"
	"testing"

	"switchboard/internal/await"
)

// StartReplica runs a replica of master for the length of the test, and returns when it
// is in step.
func StartReplica(tb testing.TB, master *Server, extra ...string) *Server {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	if err := master.Do(ctx, "config", "set", "repl-diskless-sync-delay", "0").Err(); err != nil {
		tb.Fatal(err)
	}
	s := Start(tb, append([]string{"--replicaof", hostPort(master.Addr)}, extra...)...)
	if err := await.Until(ctx, s.Addr+" is not in step with its master", func() bool {
		return s.inStep(ctx) && master.followed(ctx)
	}); err != nil {
		tb.Fatal(err)
	}
	return s
}

// Pause stops the process where it is, until Resume: its connections stay, and it does nothing.
func (s *Server) Pause() error { return s.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (s *Server) Resume() error { return s.cmd.Process.Signal(syscall.SIGCONT) }
