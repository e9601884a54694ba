package janitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// shelf is a set of names that always lists the same ones first, as a store may.
type shelf []string

func (s *shelf) list(n int) ([]string, error) { return slices.Clone((*s)[:min(n, len(*s))]), nil }

func TestDrainGetsPastBadItems(t *testing.T) {
	w := memoryWorld(t)
	var s shelf
	for i := range 20 {
		s = append(s, fmt.Sprintf("bad%d", i), fmt.Sprintf("good%d", i))
	}
	j := w.janitor(func(o *Options) { o.Chunk, o.Parallel = 2, 1 })
	err := j.drain(t.Context(), s.list, func(name string) error {
		if strings.HasPrefix(name, "bad") {
			return errors.New(name)
		}
		s = slices.DeleteFunc(s, func(n string) bool { return n == name })
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "and 12 errors more") {
		t.Errorf("error %v", err)
	}
	want(w, "left", len(s), 20)
}

func TestDrainGivesUpWhenTheStoreIsAway(t *testing.T) {
	w := memoryWorld(t)
	s := make(shelf, 100)
	for i := range s {
		s[i] = fmt.Sprint(i)
	}
	calls := 0
	j := w.janitor(func(o *Options) { o.Chunk, o.Parallel = 5, 1 })
	if err := j.drain(t.Context(), s.list, func(string) error {
		calls++
		return errors.New("away")
	}); err == nil {
		t.Error("no error")
	}
	want(w, "calls", calls, 5)
}

// late is a registry whose first census misses everybody.
type late struct {
	Registry
	calls *atomic.Int64
}

func (l late) Listed(ctx context.Context) ([]string, error) {
	if l.calls.Add(1) == 1 {
		return nil, nil
	}
	return l.Registry.Listed(ctx)
}

func TestServerThatJoinsDuringTheRoundIsNoOrphan(t *testing.T) {
	w := memoryWorld(t)
	w.server("new", 3, 0)
	w.server("newer", 3, 0)
	w.loseLease("new") // listed, and again without a lease
	var calls atomic.Int64
	j := w.janitor(func(o *Options) { o.Registry = late{w.registry, &calls} })
	want(w, "did", w.round(j.QueuesRound), Report{})
	want(w, "c0", w.channelServers("c0"), []string{"new", "newer"})
}
