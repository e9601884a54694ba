package redispipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// TestCoalescer checks that calls share the next one while one is in flight, and that each gets its
// own result.
func TestCoalescer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls [][]string
		answers := make(chan error)
		c := Coalescer{Call: func(_ context.Context, server string, names []string) error {
			calls = append(calls, append([]string{server}, names...))
			return <-answers
		}}
		var all sync.WaitGroup
		got := make(map[string]error)
		var mu sync.Mutex
		do := func(server, name string) {
			all.Go(func() {
				err := c.Do(t.Context(), server, name)
				mu.Lock()
				defer mu.Unlock()
				got[name] = err
			})
			synctest.Wait()
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			do("me", name)
		}
		wrong := errors.New("wrong")
		answers <- nil // for a
		synctest.Wait()
		do("me", "e")
		answers <- wrong // for b, c and d
		synctest.Wait()
		answers <- nil // for e
		synctest.Wait()
		do("me", "f") // nothing is in flight
		answers <- nil
		all.Wait()
		if want := [][]string{{"me", "a"}, {"me", "b", "c", "d"}, {"me", "e"}, {"me", "f"}}; !slices.EqualFunc(calls, want, slices.Equal[[]string]) {
			t.Errorf("calls %v, want %v", calls, want)
		}
		for name, err := range got {
			if failed := name >= "b" && name <= "d"; (err == wrong) != failed {
				t.Errorf("%s got %v", name, err)
			}
		}
		if len(got) != 6 {
			t.Errorf("%d results, want 6", len(got))
		}
	})
}

// TestCoalescerDoesNotWait checks that a name makes its own call if the next call is full or for
// another server.
func TestCoalescerDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sizes := make(map[string][]int)
		var mu sync.Mutex
		open := make(chan struct{})
		c := Coalescer{Call: func(_ context.Context, server string, names []string) error {
			mu.Lock()
			sizes[server] = append(sizes[server], len(names))
			mu.Unlock()
			<-open
			return nil
		}}
		var all sync.WaitGroup
		for i := range MaxNames + 3 {
			all.Go(func() { _ = c.Do(t.Context(), "me", fmt.Sprint(i)) })
			synctest.Wait()
		}
		all.Go(func() { _ = c.Do(t.Context(), "other", "x") })
		synctest.Wait()
		close(open)
		all.Wait()
		if want := []int{1, 1, 1, MaxNames}; !slices.Equal(sizes["me"], want) || !slices.Equal(sizes["other"], []int{1}) {
			t.Errorf("names by call: %v, want %v for me, and 1 for other", sizes, want)
		}
	})
}

// TestCoalescerFailsForOneName checks that an error of one name does not affect the others.
func TestCoalescerFailsForOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrong, open := errors.New("wrong"), make(chan struct{})
		c := Coalescer{Call: func(context.Context, string, []string) error {
			<-open
			return Failed{"bad": wrong}
		}}
		var all sync.WaitGroup
		for _, name := range []string{"alone", "good", "bad"} {
			all.Go(func() {
				if err := c.Do(t.Context(), "me", name); (err != nil) != (name == "bad") {
					t.Errorf("%s got %v", name, err)
				}
			})
			synctest.Wait()
		}
		close(open)
		all.Wait()
	})
}
