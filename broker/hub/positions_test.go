package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/broker/work"
	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// keeper notes whose positions are kept.
type positionRecorder struct {
	queue.Queue
	mu   sync.Mutex // guards the fields below
	kept []string
	fail error
}

func (k *positionRecorder) KeepPositions(_ context.Context, channels []string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail != nil {
		return k.fail
	}
	k.kept = append(k.kept, channels...)
	return nil
}

// take is what was kept since it was called last, in order.
func (k *positionRecorder) takeKept() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := k.kept
	k.kept = nil
	slices.Sort(kept)
	return kept
}

// TestPositionsAreKept: those of channels with readers here, soon after the first came and then
// again and again.
func TestPositionsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &positionRecorder{Queue: queue.NewMemory(queue.Options{}, nil)}
		pool := work.NewOn(2, func(worker func()) { go worker() })
		h := New(Options{
			Pool: pool, Registry: registry.NewMemory(registry.Options{}), Queue: k,
			ServerID: func() string { return "me" }, PositionTTL: 4 * time.Hour,
		})
		tick := func(after time.Duration, want ...string) {
			t.Helper()
			<-time.After(after)
			h.Tick()
			pool.Wait()
			synctest.Wait()
			if got := k.takeKept(); !slices.Equal(got, want) {
				t.Errorf("kept %.200q, want %.200q", got, want)
			}
		}
		acquire := func(name string) Position {
			t.Helper()
			pos, err := h.Acquire(t.Context(), name, nil)
			if err != nil {
				t.Fatal(err)
			}
			return pos
		}
		var many []string
		for i := range 2*positionsPerCall + 2 {
			many = append(many, fmt.Sprintf("c%04d", i))
			if _, err := k.AppendChannel(t.Context(), queue.ChannelPush{Channel: many[i], Data: []byte("1")}); err != nil {
				t.Fatal(err)
			}
		}
		acquire(many[0])
		acquire("never") // has no position
		tick(time.Second)
		tick(time.Minute, many[0])
		tick(time.Minute)
		left := acquire(many[1])
		h.Release(left.Channel)
		for _, name := range many[2:] {
			acquire(name)
		}
		k.fail = errors.New("away")
		tick(time.Second) // takes out what nobody needs
		tick(time.Minute)
		k.fail = nil
		tick(time.Second)
		tick(time.Minute, many[2:]...)
		tick(time.Minute)
		tick(time.Hour, slices.Concat(many[:1], many[2:])...)
		tick(time.Minute)
		tick(time.Hour, slices.Concat(many[:1], many[2:])...)
	})
}

// TestVacantChannel: a client that saw a channel empty comes back with the moment at which it did,
// and not with a 0 that would be good for ever.
func TestVacantChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		<-time.After(27 * 365 * 24 * time.Hour) // the bubble begins in 2000, and ids in 2020
		q := queue.NewMemory(queue.Options{MetaTTL: 4 * time.Hour}, nil)
		h := New(Options{
			Pool: work.NewOn(1, func(worker func()) { go worker() }), Registry: registry.NewMemory(registry.Options{}), Queue: q,
			ServerID: func() string { return "me" }, PositionTTL: 4 * time.Hour,
		})
		enter := func(name string, after *int64) Position {
			t.Helper()
			pos, err := h.Acquire(t.Context(), name, h.ResumeCursor(after))
			if err != nil {
				t.Fatal(err)
			}
			return pos
		}
		leave := func(pos Position) {
			h.Release(pos.Channel)
			h.Tick()
			synctest.Wait()
		}
		push := func(name string) int64 {
			t.Helper()
			a, err := q.AppendChannel(t.Context(), queue.ChannelPush{Channel: name, Data: []byte("1")})
			if err != nil {
				t.Fatal(err)
			}
			return a.ID
		}
		first := enter("room", nil)
		told := first.ResumeID
		if told == 0 || first.Cursor != 0 || told >= queue.IDAt(time.Now()) {
			t.Fatalf("position %+v", first)
		}
		if again, ok := h.TryAcquire("room", h.ResumeCursor(&told)); !ok || again.Cursor != 0 || !again.Recovered || again.ResumeID != told {
			t.Errorf("back at once: %+v, %v", again, ok)
		} else {
			h.Release(again.Channel)
		}
		leave(first)

		<-time.After(3 * time.Hour)
		id := push("room") // while it is away
		back := enter("room", &told)
		if !back.Recovered || back.Cursor != 0 || id <= told {
			t.Errorf("back to message %d: %+v", id, back)
		}
		leave(back)
		leave(enter("other", nil)) // the clock is read

		<-time.After(6 * time.Hour) // the message is gone, and that there was one
		leave(enter("other", nil))
		if late := enter("room", &told); late.Recovered {
			t.Errorf("back when all is forgotten: %+v", late)
		} else if late.ResumeID == 0 || late.ResumeID <= told {
			t.Errorf("what it is told then: %+v", late)
		}
		if all := enter(wire.AllChannel, nil); all.ResumeID != 0 {
			t.Errorf("everyone's channel is never forgotten while a server runs: %+v", all)
		}
	})
}
