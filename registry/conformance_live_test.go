package registry

import (
	"slices"
	"testing"
	"time"
)

// watcher is a server that renews its lease and reads the changes.
type watcher struct {
	*testing.T
	s      store
	self   Server
	number int64
}

// sees renews the lease and compares the changes: "+a" has started or changed, "-a" has ended, and
// "all" comes first if all servers are returned.
func (w *watcher) sees(want ...string) Changes {
	w.Helper()
	c, err := w.s.Renew(w.Context(), w.self, w.number)
	ok(w.T, err)
	var got []string
	if c.All {
		got = append(got, "all")
	}
	for _, s := range c.Changed {
		got = append(got, "+"+s.ID)
	}
	for _, id := range c.Ended {
		got = append(got, "-"+id)
	}
	if !slices.Equal(got, want) {
		w.Errorf("the changes are %v, want %v", got, want)
	}
	w.number = c.Number
	return c
}

func testChanges(t *testing.T, s store) {
	ctx := t.Context()
	a := &watcher{T: t, s: s, self: Server{ID: "a"}}
	b := Server{ID: "b", Host: "b:1", Version: "1.2", StartedAt: time.UnixMilli(1_700_000_000_123).UTC(), Connections: 7, Watching: 3}
	a.sees("all", "+a")
	a.sees()
	ok(t, s.Join(ctx, b))
	c := a.sees("+b")
	wanted := b
	wanted.Connections, wanted.Watching, wanted.Can = 0, 0, features
	if c.Changed[0] != wanted || c.Listed != 2 {
		t.Errorf("changed %+v of %d, want %+v of 2", c.Changed[0], c.Listed, wanted)
	}
	b.Connections, b.Watching = 8, 0
	ok(t, s.Beat(ctx, b))
	a.sees()
	b.Host = "b:2"
	ok(t, s.Beat(ctx, b))
	a.sees("+b")
	ok(t, s.Join(ctx, Server{ID: "c"}))
	ok(t, s.Join(ctx, Server{ID: "d"}))
	ok(t, s.Leave(ctx, "c"))
	ok(t, s.Leave(ctx, "b"))
	if c := a.sees("+d", "-b", "-c"); c.Listed != 2 {
		t.Errorf("%d servers are listed, want 2", c.Listed)
	}
	a.sees()
	a.number = 0
	a.sees("all", "+a", "+d")
	a.number += int64(time.Hour) // as before a failover that lost the last changes
	a.sees("all", "+a", "+d")
}

// testLeaseInList checks that the end of a lease is a change, and that its server may come back.
func testLeaseInList(t *testing.T, s store) {
	a, b := &watcher{T: t, s: s, self: Server{ID: "a"}}, &watcher{T: t, s: s, self: Server{ID: "b"}}
	a.sees("all", "+a")
	b.sees("all", "+a", "+b")
	a.sees("+b")
	s.endListed(t, "b")
	if c := a.sees("-b"); c.Listed != 2 {
		t.Errorf("%d servers are listed, want 2", c.Listed)
	}
	a.sees()
	b.sees("all", "+a", "+b")
	a.sees("+b")
	s.endListed(t, "b")
	b.sees("all", "+a", "+b") // before another server has noticed
	a.sees()
}

// testPause checks that no lease ends while no server could renew its own.
func testPause(t *testing.T, s store) {
	ok(t, s.Join(t.Context(), Server{ID: "b"}))
	ok(t, s.Join(t.Context(), Server{ID: "c"}))
	a, b := &watcher{T: t, s: s, self: Server{ID: "a"}}, &watcher{T: t, s: s, self: Server{ID: "b"}}
	a.sees("all", "+a", "+b", "+c")
	b.sees("all", "+a", "+b", "+c")
	s.pause(t, time.Minute)
	a.sees()
	b.sees()
	for range 2 {
		s.pause(t, 3500*time.Millisecond)
		a.sees()
		b.sees()
	}
	s.pause(t, 3500*time.Millisecond)
	a.sees("-c")
	b.sees("-c")
}

// testDeadInList checks that a server that was declared dead leaves the list, and stays away.
func testDeadInList(t *testing.T, s store) {
	a, b := &watcher{T: t, s: s, self: Server{ID: "a"}}, &watcher{T: t, s: s, self: Server{ID: "b"}}
	b.sees("all", "+b")
	a.sees("all", "+a", "+b")
	b.sees("+a")
	declareDead(t, s, "b")
	for range 2 {
		_, err := s.Renew(t.Context(), b.self, b.number)
		fails(t, err, ErrDead)
		ok(t, s.Beat(t.Context(), a.self)) // in memory, all leases have ended
	}
	a.number = 0
	a.sees("all", "+a")
}

// testStatesInChanges checks that a beat returns the number of its own server.
func testStatesInChanges(t *testing.T, s store) {
	a := &watcher{T: t, s: s, self: Server{ID: "a"}}
	a.sees("all", "+a")
	ok(t, s.NotifyStates(t.Context(), []string{"a"}))
	server, _, err := s.Lease(t.Context(), "a")
	ok(t, err)
	for range 2 {
		if c := a.sees(); c.StatesChanged == 0 || c.StatesChanged != server.StatesChanged {
			t.Errorf("the number is %d, want %d", c.StatesChanged, server.StatesChanged)
		}
		a.number = 0
		a.sees("all", "+a")
	}
}
