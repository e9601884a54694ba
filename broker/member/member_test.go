package member

import (
	"testing"
	"time"

	"switchboard/registry"
)

// newMember returns a Member with the id self.
func newMember(r Registry) *Member {
	return New(Options{Registry: r, NewID: func() string { return "self" }, Beat: time.Minute})
}

// TestNotifiedOfStates checks that each notification by a janitor counts once, and also the end of
// the number with the lease, and each server that is no longer listed.
func TestNotifiedOfStates(t *testing.T) {
	m := newMember(registry.NewMemory(registry.Options{}))
	for i, step := range []struct {
		changed  int64
		unlisted []string
		want     bool
	}{{0, nil, false}, {7, nil, true}, {7, nil, false}, {8, nil, true}, {0, nil, true}, {0, nil, false}, {0, []string{"a"}, true}, {0, nil, false}} {
		if ended := m.statesEnded(step.changed, step.unlisted); ended != step.want {
			t.Errorf("step %d: %t, want %t", i, ended, step.want)
		}
	}
}

// TestLiveBeforeTheFirstList checks that this server counts as live as soon as it has a lease. A
// push would otherwise report that its clients are offline.
func TestLiveBeforeTheFirstList(t *testing.T) {
	m := newMember(registry.NewMemory(registry.Options{}))
	if m.IsLive("self") {
		t.Error("live without a lease")
	}
	m.joined.Store(true)
	if !m.IsLive("self") || m.IsLive("other") {
		t.Errorf("live %v, another server %v; want true and false", m.IsLive("self"), m.IsLive("other"))
	}
}
