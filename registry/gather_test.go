package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// TestGather: what comes while a call is under way goes together in the next, and everyone gets the answer of his own.
func TestGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls [][]string
		answers := make(chan error)
		g := gather{call: func(_ context.Context, server string, names []string) error {
			calls = append(calls, append([]string{server}, names...))
			return <-answers
		}}
		var all sync.WaitGroup
		got := make(map[string]error)
		var mu sync.Mutex
		do := func(server, name string) {
			all.Go(func() {
				err := g.do(t.Context(), server, name)
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
		do("me", "f") // nothing is under way any more
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
			t.Errorf("%d have an answer, want 6", len(got))
		}
	})
}

// TestGatherIsBounded: neither a full call nor another server waits for the next.
func TestGatherIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sizes := make(map[string][]int)
		var mu sync.Mutex
		open := make(chan struct{})
		g := gather{call: func(_ context.Context, server string, names []string) error {
			mu.Lock()
			sizes[server] = append(sizes[server], len(names))
			mu.Unlock()
			<-open
			return nil
		}}
		var all sync.WaitGroup
		for i := range maxGathered + 3 {
			all.Go(func() { _ = g.do(t.Context(), "me", fmt.Sprint(i)) })
			synctest.Wait()
		}
		all.Go(func() { _ = g.do(t.Context(), "other", "x") })
		synctest.Wait()
		close(open)
		all.Wait()
		if want := []int{1, 1, 1, maxGathered}; !slices.Equal(sizes["me"], want) || !slices.Equal(sizes["other"], []int{1}) {
			t.Errorf("names by call: %v, want %v for me, and 1 for other", sizes, want)
		}
	})
}

// TestGatherTellsEachItsOwn: what failed for some is no error of the others.
func TestGatherTellsEachItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrong, open := errors.New("wrong"), make(chan struct{})
		g := gather{call: func(context.Context, string, []string) error {
			<-open
			return each{"bad": wrong}
		}}
		var all sync.WaitGroup
		for _, name := range []string{"alone", "good", "bad"} {
			all.Go(func() {
				if err := g.do(t.Context(), "me", name); (err != nil) != (name == "bad") {
					t.Errorf("%s got %v", name, err)
				}
			})
			synctest.Wait()
		}
		close(open)
		all.Wait()
	})
}
