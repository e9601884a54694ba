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

// nameList lists the same names first in every call, as a store may.
type nameList []string

func (s *nameList) list(n int) ([]string, error) { return slices.Clone((*s)[:min(n, len(*s))]), nil }

func TestRemoveAllSkipsFailedNames(t *testing.T) {
	e := memoryEnv(t)
	var s nameList
	for i := range 20 {
		s = append(s, fmt.Sprintf("failing%d", i), fmt.Sprintf("good%d", i))
	}
	j := e.janitor(func(o *Options) { o.Chunk, o.Parallel = 2, 1 })
	err := j.removeAll(t.Context(), s.list, func(name string) error {
		if strings.HasPrefix(name, "failing") {
			return errors.New(name)
		}
		s = slices.DeleteFunc(s, func(n string) bool { return n == name })
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "and 12 more errors") {
		t.Errorf("error %v", err)
	}
	equal(e, "remaining names", len(s), 20)
}

func TestRemoveAllStopsAfterFailedChunk(t *testing.T) {
	e := memoryEnv(t)
	s := make(nameList, 100)
	for i := range s {
		s[i] = fmt.Sprint(i)
	}
	calls := 0
	j := e.janitor(func(o *Options) { o.Chunk, o.Parallel = 5, 1 })
	if err := j.removeAll(t.Context(), s.list, func(string) error {
		calls++
		return errors.New("store unavailable")
	}); err == nil {
		t.Error("no error")
	}
	equal(e, "calls", calls, 5)
}

// firstEmpty is a registry whose first call of Listed returns no servers.
type firstEmpty struct {
	Registry
	calls *atomic.Int64
}

func (f firstEmpty) Listed(ctx context.Context) ([]string, error) {
	if f.calls.Add(1) == 1 {
		return nil, nil
	}
	return f.Registry.Listed(ctx)
}

func TestServerThatJoinsDuringRoundIsNoOrphan(t *testing.T) {
	e := memoryEnv(t)
	e.addServer("new", 3, 0)
	e.addServer("newer", 3, 0)
	e.expireLease("new") // listed, but without a lease
	var calls atomic.Int64
	j := e.janitor(func(o *Options) { o.Registry = firstEmpty{e.registry, &calls} })
	equal(e, "report", e.round(j.QueuesRound), Report{})
	equal(e, "c0", e.serversOf("c0"), []string{"new", "newer"})
}
