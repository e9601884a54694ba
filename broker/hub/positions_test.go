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

// positionRecorder records the channels whose positions are refreshed.
type positionRecorder struct {
	*queue.Memory
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

// takeKept returns the channels that were refreshed since the last call, sorted.
func (k *positionRecorder) takeKept() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := k.kept
	k.kept = nil
	slices.Sort(kept)
	return kept
}

// TestPositionsAreRefreshed checks that the position of each channel with subscribers is refreshed
// soon after the binding, and then periodically.
func TestPositionsAreRefreshed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &positionRecorder{Memory: queue.NewMemory(queue.Options{}, nil)}
		pool := work.NewOn(2, func(worker func()) { go worker() })
		h := New(Options{
			Pool: pool, Registry: registry.NewMemory(registry.Options{}), Queue: k,
			ServerID: func() string { return "me" }, Messages: maker, PositionTTL: 4 * time.Hour,
		})
		tick := func(wait time.Duration, want ...string) {
			t.Helper()
			<-time.After(wait)
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
		k.fail = errors.New("unavailable")
		tick(time.Second) // unbinds the channel that was released
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

// TestEmptyChannelResumeID checks that a client that saw an empty channel resumes with an id that
// encodes the time, and not with 0, which would be valid without limit.
func TestEmptyChannelResumeID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		<-time.After(27 * 365 * 24 * time.Hour) // the bubble begins in 2000, before the epoch of the ids in 2020
		q := queue.NewMemory(queue.Options{MetaTTL: 4 * time.Hour}, nil)
		h := New(Options{
			Pool: work.NewOn(1, func(worker func()) { go worker() }), Registry: registry.NewMemory(registry.Options{}), Queue: q,
			ServerID: func() string { return "me" }, Messages: maker, PositionTTL: 4 * time.Hour,
		})
		acquire := func(name string, after *int64) Position {
			t.Helper()
			pos, err := h.Acquire(t.Context(), name, h.ResumeCursor(after))
			if err != nil {
				t.Fatal(err)
			}
			return pos
		}
		release := func(pos Position) {
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
		first := acquire("room", nil)
		resumeID := first.ResumeID
		if resumeID == 0 || first.Cursor != 0 || resumeID >= queue.IDAt(time.Now()) {
			t.Fatalf("position %+v", first)
		}
		if again, ok := h.TryAcquire("room", h.ResumeCursor(&resumeID)); !ok || again.Cursor != 0 || !again.Recovered || again.ResumeID != resumeID {
			t.Errorf("back at once: %+v, %v", again, ok)
		} else {
			h.Release(again.Channel)
		}
		release(first)

		<-time.After(3 * time.Hour)
		id := push("room") // while the client is away
		back := acquire("room", &resumeID)
		if !back.Recovered || back.Cursor != 0 || id <= resumeID {
			t.Errorf("back to message %d: %+v", id, back)
		}
		if before := back.ResumeID; before <= resumeID || before >= id || *h.ResumeCursor(&before) != 0 {
			t.Errorf("back to message %d: the position is %d, want one of an empty channel just before it", id, before)
		}
		release(back)
		release(acquire("other", nil)) // this reads the store's clock

		<-time.After(6 * time.Hour) // the store has forgotten the message and the channel's position
		release(acquire("other", nil))
		if late := acquire("room", &resumeID); late.Recovered {
			t.Errorf("back after the store forgot the position: %+v", late)
		} else if late.ResumeID == 0 || late.ResumeID <= resumeID {
			t.Errorf("the resume id in that case: %+v", late)
		}
		if all := acquire(wire.AllChannel, nil); all.ResumeID == 0 || all.Cursor != 0 {
			t.Errorf("the position of the channel of all clients expires as well: %+v", all)
		}
		if internal := acquire("$internal", nil); internal.ResumeID != 0 {
			t.Errorf("no client resumes an internal channel: %+v", internal)
		}
	})
}
