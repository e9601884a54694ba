package account

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// newTestTurns returns turns with a number of processors.
func newTestTurns(processors int) *turns {
	t := newTurns()
	t.processors = func() int { return processors }
	return t
}

// TestTurnsAreFair: many attempts of one account or one address do not delay others by more than
// the one under way and one more.
func TestTurnsAreFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTestTurns(2)
		var order []string
		compute := func(name string, queues ...string) {
			go func() {
				done, err := turns.take(t.Context(), queues...)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, name) // one at a time
				time.Sleep(time.Millisecond)
				done()
			}()
			synctest.Wait()
		}
		for range 5 {
			compute("mallory", "192.0.2.66", "account of amy")
		}
		compute("bob", "192.0.2.1", "account of bob")
		compute("amy", "192.0.2.2", "account of amy")
		compute("mallory 2", "192.0.2.66", "account of carl")
		compute("bob again", "192.0.2.1", "account of bob")
		compute("backend")
		synctest.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		want := []string{
			"mallory", "bob", "backend", "mallory", "bob again", "mallory", "mallory", "mallory", "amy", "mallory 2",
		}
		if !slices.Equal(order, want) {
			t.Errorf("got  %v\nwant %v", order, want)
		}
		if len(turns.last) != 0 {
			t.Errorf("%d queues are remembered", len(turns.last))
		}
	})
}

// TestTurnsLeaveProcessors: at most half of the processors compute, and half of the time if there
// is only one.
func TestTurnsLeaveProcessors(t *testing.T) {
	for processors, want := range map[int]time.Duration{1: 19, 2: 10, 3: 10, 4: 5, 8: 3} {
		synctest.Test(t, func(t *testing.T) {
			turns, begun := newTestTurns(processors), time.Now()
			var last atomic.Int64 // when the last one ended, ns since begun
			for range 10 {
				go func() {
					done, _ := turns.take(t.Context())
					time.Sleep(time.Second)
					last.Store(int64(time.Since(begun)))
					done()
				}()
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := time.Duration(last.Load()); got != want*time.Second {
				t.Errorf("%d processors: 10 passwords of 1 s took %v, want %ds", processors, got, want)
			}
		})
	}
}

// TestTurnWithdrawn: a caller that no longer waits takes no turn.
func TestTurnWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTestTurns(2)
		first, _ := turns.take(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		refused := make(chan error, 1)
		go func() {
			_, err := turns.take(ctx)
			refused <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-refused; err == nil {
			t.Error("a caller that left got a turn")
		}
		first()
		if done, err := turns.take(t.Context()); err != nil || turns.running != 1 {
			t.Errorf("%d turns run: %v", turns.running, err)
		} else {
			done()
		}
		if turns.running != 0 || turns.waiting.Len() != 0 {
			t.Errorf("%d turns run, %d wait", turns.running, turns.waiting.Len())
		}
	})
}
