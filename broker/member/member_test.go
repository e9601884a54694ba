package member

import (
	"slices"
	"testing"
	"time"

	"switchboard/registry"
)

// newMember returns a Member with the id self.
func newMember(r Registry) *Member {
	return New(Options{Registry: r, NewID: func() string { return "self" }, Beat: time.Minute})
}

// TestNotifiedOfStates checks that each notification by a janitor counts once, and also the end of
// the number with the lease.
func TestNotifiedOfStates(t *testing.T) {
	m := newMember(registry.NewMemory(registry.Options{}))
	for i, step := range []struct {
		changed int64
		want    bool
	}{{0, false}, {7, true}, {7, false}, {8, true}, {0, true}, {0, false}} {
		m.noteStates(step.changed)
		if ended := m.statesEnded.Swap(false); ended != step.want {
			t.Errorf("step %d: %t, want %t", i, ended, step.want)
		}
	}
}

// doubtfulLinks are links to servers of which some have said goodbye.
type doubtfulLinks struct {
	Links
	left   map[string]bool
	doubts []string
}

func (l *doubtfulLinks) Unlisted(server string) (doubted bool) { return !l.left[server] }

func (l *doubtfulLinks) Doubts() []string {
	doubts := l.doubts
	l.doubts = nil
	return doubts
}

// TestLastDoubt checks that a server that is no longer listed is looked into once, unless it has
// said goodbye.
func TestLastDoubt(t *testing.T) {
	m := newMember(registry.NewMemory(registry.Options{}))
	m.Attach(Parts{Links: &doubtfulLinks{left: map[string]bool{"b": true}, doubts: []string{"d"}}})
	m.addUnlisted([]string{"a", "b", "c"})
	want := []string{"a", "c", "d"}
	if got := m.takeDoubts(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := m.takeDoubts(); len(got) != 0 {
		t.Errorf("then %v", got)
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
