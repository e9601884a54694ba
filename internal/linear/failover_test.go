package linear

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"switchboard/internal/redistest"
	"switchboard/queue"
)

// TestFailover kills a master, whose replica takes over without the newest entries. The killed
// master shows which ones: it has an append-only file.
func TestFailover(t *testing.T) {
	s := redistest.StartSentinel(t, "--appendonly", "yes", "--appendfsync", "no")
	prefix := newPrefix()
	queues, h := openStores(t, s.URL(), prefix, 3), newHistory()
	first, err := s.Master(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ended atomic.Bool
	w := newWorkload(uint64(max(0, *oneSeed)))
	w.calls, w.ended, w.durable = 1e6, ended.Load, true
	failure := make(chan error, 1)
	go func() {
		defer ended.Store(true)
		failure <- failOver(t.Context(), h, s)
	}()
	w.run(t.Context(), h, storesOf(queues)...)
	if err := <-failure; err != nil {
		t.Fatal(err)
	}
	log := readLog(t, queues[0])
	for _, sentinel := range s.Sentinels { // they would make the first master a replica
		sentinel.Kill()
	}
	if err := first.Restart(); err != nil {
		t.Fatal(err)
	}
	lost := withoutPrefix(readLog(t, openStores(t, first.URL(), prefix, 1)[0]), log)
	if wrong := h.check(log, lost); wrong != "" {
		t.Fatal(wrong)
	}
	outcomes := map[string]int{"entries": len(log), "lost": len(lost)}
	h.count(outcomes)
	for _, l := range log {
		if _, _, isMarker := queue.Loss(l.Data); isMarker {
			outcomes["marker"]++
		}
	}
	t.Log(outcomes)
	for _, outcome := range []string{"lost", "durable", "marker"} {
		if outcomes[outcome] == 0 {
			t.Errorf("the history has no outcome %q: this test proves nothing", outcome)
		}
	}
}

// failOver interrupts the replication, kills the master some calls later, and returns some calls
// after the replica has taken over.
func failOver(ctx context.Context, h *history, s *redistest.Sentinel) error {
	<-h.after(400)
	master, err := s.Master(ctx)
	if err != nil {
		return err
	}
	replica, err := s.Replica(ctx)
	if err != nil {
		return err
	}
	// The replica reads nothing more, and a large value fills the buffers of its connection. All later
	// entries remain in the memory of the master.
	if err := replica.Pause(); err != nil {
		return err
	}
	if err := master.Do(ctx, "set", "large", strings.Repeat("x", 32<<20)).Err(); err != nil {
		return err
	}
	<-h.after(200)
	master.Kill()
	if err := replica.Resume(); err != nil {
		return err
	}
	<-h.after(400)
	return nil
}
