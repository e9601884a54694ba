package member

import (
	"context"
	"reflect"
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
	urgent bool
}

func (l *doubtfulLinks) Unlisted(server string) (doubted bool) { return !l.left[server] }

func (l *doubtfulLinks) Doubts() ([]string, bool) {
	doubts := l.doubts
	l.doubts = nil
	return doubts, l.urgent
}

// TestSlowSweep checks that a Sweep without an urgent doubt does not wait, and that what becomes
// urgent meanwhile, or is in doubt meanwhile, does not wait for it.
func TestSlowSweep(t *testing.T) {
	m := New(Options{
		Registry: registry.NewMemory(registry.Options{}), NewID: func() string { return "self" },
		Beat: time.Minute, Pace: time.Millisecond, SlowPace: time.Second,
	})
	links := &doubtfulLinks{}
	m.Attach(Parts{Links: links})
	until, slow := make(chan struct{}), make(chan []string, 1)
	var quick [][]string
	m.doubts.compare = func(_ context.Context, doubts []string, pace time.Duration) {
		if pace == time.Second {
			slow <- doubts
			<-until
		} else {
			quick = append(quick, doubts)
		}
	}
	sweep := func(server string, urgent bool) {
		links.doubts, links.urgent = []string{server}, urgent
		if !m.Sweep(t.Context()) {
			t.Errorf("%s is no doubt", server)
		}
	}
	sweep("killed", false)
	if got := <-slow; !slices.Equal(got, []string{"killed"}) {
		t.Errorf("slowly: %v", got)
	}
	sweep("silent", true)
	sweep("killed too", false)
	if want := [][]string{{"silent"}, {"killed too"}}; !reflect.DeepEqual(quick, want) {
		t.Errorf("meanwhile: %v, want %v", quick, want)
	}
	close(until)
	m.Wait()
	sweep("killed later", false)
	if got := <-slow; !slices.Equal(got, []string{"killed later"}) {
		t.Errorf("slowly: %v", got)
	}
	m.Wait()
}

// TestLastDoubt checks that a server that is no longer listed is looked into once, unless it has
// said goodbye.
func TestLastDoubt(t *testing.T) {
	m := newMember(registry.NewMemory(registry.Options{}))
	m.Attach(Parts{Links: &doubtfulLinks{left: map[string]bool{"b": true}, doubts: []string{"d"}}})
	m.addUnlisted([]string{"a", "b", "c"})
	want := []string{"a", "c", "d"}
	if got, _ := m.takeDoubts(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, _ := m.takeDoubts(); len(got) != 0 {
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
