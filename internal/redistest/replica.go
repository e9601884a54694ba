package redistest

import (
	"context"
	"testing"

	"switchboard/internal/await"
)

// StartReplica runs a replica of master until the test ends. It returns when the replica is in
// sync.
func StartReplica(tb testing.TB, master *Server, extra ...string) *Server {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	if err := master.Do(ctx, "config", "set", "repl-diskless-sync-delay", "0").Err(); err != nil {
		tb.Fatal(err)
	}
	s := Start(tb, append([]string{"--replicaof", hostPort(master.Addr)}, extra...)...)
	if err := await.Until(ctx, s.Addr+" is not in sync with its master", func() bool {
		return s.inSync(ctx) && master.replicates(ctx)
	}); err != nil {
		tb.Fatal(err)
	}
	return s
}

// Detach ends a replica's link to its master, and keeps it from getting another one until Attach.
// What the master stores from then on dies with it. Pause is not enough for that: a resumed replica
// finds in its socket all that the master had sent.
func (s *Server) Detach(ctx context.Context) error {
	if err := s.Do(ctx, "config", "set", "masterauth", "wrong").Err(); err != nil {
		return err
	}
	return s.Do(ctx, "client", "kill", "type", "master").Err()
}

// Attach ends the effect of Detach. Call it after the replica was promoted, too: it may become a
// replica again.
func (s *Server) Attach(ctx context.Context) error {
	return s.Do(ctx, "config", "set", "masterauth", "").Err()
}
