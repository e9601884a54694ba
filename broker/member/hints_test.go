package member

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/broker/peer"
	"switchboard/broker/presence"
	"switchboard/broker/work"
	"switchboard/registry"
)

// sentHints are links that record to which servers hints were sent, and which servers they know.
type sentHints struct {
	Links
	to []string
}

func (s *sentHints) Send(server string, h peer.Hint) { s.to = append(s.to, server+" "+h.Name) }
func (s *sentHints) Miss(server string)              { s.to = append(s.to, server+" misses one") }
func (s *sentHints) SetServers([]registry.Server)    { s.to = append(s.to, "list") }

// take returns what was sent since the last call.
func (s *sentHints) take() (to []string) {
	to, s.to = s.to, nil
	return to
}

// TestUserChanged checks that changes of a user reach the servers that watch it, also one that this
// server does not know yet, and those of former versions that watch any user.
func TestUserChanged(t *testing.T) {
	links := &sentHints{}
	store := registry.NewMemory(registry.Options{})
	m := newMember(store)
	m.Attach(Parts{Presence: presence.New(presence.Options{Pool: work.New(1), Store: store, ServerID: m.ID}), Links: links})
	expect := func(want ...string) {
		t.Helper()
		slices.Sort(links.to)
		if to := links.take(); fmt.Sprint(to) != fmt.Sprint(want) {
			t.Errorf("hints were sent to %v, want %v", to, want)
		}
	}
	if !m.HasFormer() {
		t.Error("before the first beat, there are no servers of former versions")
	}
	live := map[string]registry.Server{"self": {ID: "self", Watching: 1}}
	for _, s := range []registry.Server{{ID: "a", Can: "changes", Watching: 3}, {ID: "b", Can: "changes"}} {
		live[s.ID] = s
	}
	m.setLive(live)
	links.take()
	m.UserChanged("ann", nil)
	expect()
	m.UserChanged("ann", []string{"b", "new", "self"})
	expect("b ann", "new ann")
	if m.HasFormer() {
		t.Error("there are servers of former versions")
	}

	live["old"], live["older"] = registry.Server{ID: "old", Watching: 3}, registry.Server{ID: "older"}
	m.setLive(live)
	links.take()
	m.UserChanged("bob", []string{"a"})
	expect("a bob", "old bob")
	if !m.HasFormer() {
		t.Error("there are no servers of former versions")
	}
}

// TestHintsToAll checks that hints to all servers count for those, too, that this server does not
// know yet, and before the links know them. After a lease, a server that starts is really new.
func TestHintsToAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := registry.NewMemory(registry.Options{Lease: time.Hour})
		links := &sentHints{}
		m := newMember(store)
		m.opts.Describe = func(id string) registry.Server { return registry.Server{ID: id} }
		m.Attach(Parts{Presence: presence.New(presence.Options{Pool: work.NewOn(1, func(worker func()) { go worker() }), Store: store, ServerID: m.ID}), Links: links})
		join := func(id string) {
			if _, err := store.Renew(t.Context(), registry.Server{ID: id}, 0); err != nil {
				t.Fatal(err)
			}
		}
		beat := func(what string, want ...string) {
			t.Helper()
			if _, err := m.renew(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := links.take(); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		join("a")
		beat("without hints to all", "list")
		join("b")
		m.Supersede("", "ann/phone", 7)
		if got := links.take(); !slices.Equal(got, []string{"a ann/phone"}) {
			t.Errorf("the hint was sent to %q", got)
		}
		join("c")
		beat("two servers have started", "b misses one", "c misses one", "list")
		time.Sleep(m.lease)
		join("d")
		beat("one more within a lease", "d misses one", "list")
		time.Sleep(time.Second)
		beat("after a lease", "list")
		join("e")
		beat("a new server", "list")
		m.MissHints()
		if got := slices.Sorted(slices.Values(links.take())); !slices.Equal(got, []string{"a misses one", "b misses one", "c misses one", "d misses one", "e misses one"}) {
			t.Errorf("MissHints: %q", got)
		}
		join("f")
		beat("after MissHints", "f misses one", "list")
	})
}
