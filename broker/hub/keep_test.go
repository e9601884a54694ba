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
	"switchboard/queue"
	"switchboard/registry"
)

// keeper notes whose positions are kept.
type keeper struct {
	queue.Queue
	mu   sync.Mutex // guards the fields below
	kept []string
	fail error
}

func (k *keeper) KeepPositions(_ context.Context, channels []string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail != nil {
		return k.fail
	}
	k.kept = append(k.kept, channels...)
	return nil
}

// take is what was kept since it was called last, in order.
func (k *keeper) take() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := k.kept
	k.kept = nil
	slices.Sort(kept)
	return kept
}

// TestPositionsAreKept: those of channels with readers here, soon after the first came and then again and again.
func TestPositionsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{Queue: queue.NewMemory(queue.Options{}, nil)}
		pool := work.NewOn(2, func(worker func()) { go worker() })
		h := New(Options{
			Pool: pool, Registry: registry.NewMemory(registry.Options{}), Queue: k,
			ServerID: func() string { return "me" }, KeepEvery: time.Hour,
		})
		tick := func(after time.Duration, want ...string) {
			t.Helper()
			<-time.After(after)
			h.Tick()
			pool.Wait()
			synctest.Wait()
			if got := k.take(); !slices.Equal(got, want) {
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
		for i := range 2*keepAtOnce + 2 {
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
