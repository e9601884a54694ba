//go:build long

package linear

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"switchboard/internal/redistest"
	"switchboard/queue"
)

// replicated is a Redis in which a replica takes over for the master of the channel.
type replicated struct {
	url             string
	master, replica *redistest.Server
}

// appendOnly are the arguments of a server whose data can be read after it was killed.
var appendOnly = []string{"--appendonly", "yes", "--appendfsync", "no"}

// TestSentinelFailover kills a master, and Sentinels promote its replica.
func TestSentinelFailover(t *testing.T) {
	t.Parallel() // it mostly waits
	s := redistest.StartSentinel(t, appendOnly...)
	master, err := s.Master(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	replica, err := s.Replica(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	overFailover(t, replicated{s.URL(), master, replica})
}

// TestClusterFailover kills the master of the channel's slot. The Cluster elects its replica.
func TestClusterFailover(t *testing.T) {
	t.Parallel()
	c := redistest.StartReplicatedCluster(t, 3, appendOnly...)
	master, replica, err := c.Of(t.Context(), "{"+channel+"}")
	if err != nil {
		t.Fatal(err)
	}
	overFailover(t, replicated{c.URL(), master, replica})
}

// overFailover checks a history in which the replica takes over without the newest entries. The
// killed master shows which ones: it has an append-only file. The history without them must be
// linearizable, and they may include no durable update that was acknowledged.
func overFailover(t *testing.T, r replicated) {
	prefix := newPrefix()
	queues, h := openStores(t, r.url, prefix, 3), newHistory()
	var ended atomic.Bool
	w := newWorkload(uint64(max(0, *oneSeed)))
	w.calls, w.ended, w.durable = 1e6, ended.Load, true
	w.owners = false // the log does not show whether the end of a generation is lost
	failure := make(chan error, 1)
	go func() {
		defer ended.Store(true)
		failure <- r.failOver(t.Context(), h)
	}()
	w.run(t.Context(), h, storesOf(queues)...)
	if err := <-failure; err != nil {
		t.Fatal(err)
	}
	log := readLog(t, queues[0])
	killed := r.master.StartCopy(t)
	lost := withoutPrefix(readLog(t, openStores(t, killed.URL(), prefix, 1)[0]), log)
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
func (r replicated) failOver(ctx context.Context, h *history) error {
	<-h.after(400)
	// The replica reads nothing more, and a large value fills the buffers of its connection. All later
	// entries remain in the memory of the master.
	if err := r.replica.Pause(); err != nil {
		return err
	}
	large := "{" + channel + "}large" // in the slot of the channel
	if err := r.master.Do(ctx, "set", large, strings.Repeat("x", 32<<20)).Err(); err != nil {
		return err
	}
	<-h.after(200)
	r.master.Kill()
	if err := r.replica.Resume(); err != nil {
		return err
	}
	<-h.after(400)
	return nil
}
