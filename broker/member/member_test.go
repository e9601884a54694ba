package member

import (
	"context"
	"testing"
	"time"

	"switchboard/registry"
)

// serverList is a registry whose servers have leases, or are only listed.
type serverList struct {
	Registry
	live, listed []string
	lists        int   // calls of Listed
	changed      int64 // StatesChanged of each server
}

func (l *serverList) Servers(context.Context) (servers []registry.Server, err error) {
	for _, id := range l.live {
		servers = append(servers, registry.Server{ID: id, StatesChanged: l.changed})
	}
	return servers, nil
}

func (l *serverList) Listed(context.Context) ([]string, error) {
	l.lists++
	return l.listed, nil
}

// newMember returns a Member with the id self.
func newMember(r Registry) *Member {
	return New(Options{Registry: r, NewID: func() string { return "self" }, Beat: time.Minute})
}

// TestForgottenServers checks that readServers reports once that a server is no longer listed,
// and reads the list only while a server without a lease may be on it.
func TestForgottenServers(t *testing.T) {
	list := &serverList{}
	m := newMember(list)
	for i, step := range []struct {
		live, listed []string
		forgotten    bool
		lists        int
	}{
		{live: []string{"a", "b"}, listed: []string{"a", "b"}},
		{live: []string{"a"}, listed: []string{"a", "b"}, lists: 1},
		{live: []string{"a"}, listed: []string{"a", "b"}, lists: 2},
		{live: []string{"a"}, listed: []string{"a"}, forgotten: true, lists: 3},
		{live: []string{"a"}, listed: []string{"a"}, lists: 3},
		{live: nil, listed: []string{"a"}, lists: 4},
		{live: []string{"a"}, listed: []string{"a"}, lists: 4}, // it has renewed its lease
		{live: nil, listed: nil, forgotten: true, lists: 5},
	} {
		list.live, list.listed = step.live, step.listed
		_, forgotten, err := m.readServers(t.Context())
		if err != nil || forgotten != step.forgotten || list.lists != step.lists {
			t.Errorf("step %d: forgotten %t after %d lists, %v; want %t after %d", i, forgotten, list.lists, err, step.forgotten, step.lists)
		}
	}
}

// TestNotifiedOfStates checks that readServers reports each notification by a janitor once, and
// also the end of the number with the lease.
func TestNotifiedOfStates(t *testing.T) {
	list := &serverList{live: []string{"other", "self"}}
	m := newMember(list)
	for i, step := range []struct {
		changed int64
		want    bool
	}{{0, false}, {7, true}, {7, false}, {8, true}, {0, true}, {0, false}} {
		list.changed = step.changed
		if _, ended, err := m.readServers(t.Context()); err != nil || ended != step.want {
			t.Errorf("step %d: %t, %v; want %t", i, ended, err, step.want)
		}
	}
}

// TestLiveBeforeTheFirstList checks that this server counts as live as soon as it has a lease. A
// push would otherwise report that its clients are offline.
func TestLiveBeforeTheFirstList(t *testing.T) {
	m := newMember(&serverList{})
	if m.IsLive("self") {
		t.Error("live without a lease")
	}
	m.joined.Store(true)
	if !m.IsLive("self") || m.IsLive("other") {
		t.Errorf("live %v, another server %v; want true and false", m.IsLive("self"), m.IsLive("other"))
	}
}
