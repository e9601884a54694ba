package member

import (
	"fmt"
	"slices"
	"testing"

	"switchboard/broker/peer"
	"switchboard/broker/presence"
	"switchboard/broker/work"
	"switchboard/registry"
)

// sentHints are links that record to which servers hints were sent.
type sentHints struct {
	Links
	to []string
}

func (s *sentHints) Send(server string, h peer.Hint) { s.to = append(s.to, server+" "+h.Name) }

func (s *sentHints) SetServers([]registry.Server) {}

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
		if fmt.Sprint(links.to) != fmt.Sprint(want) {
			t.Errorf("hints were sent to %v, want %v", links.to, want)
		}
		links.to = nil
	}
	if !m.HasFormer() {
		t.Error("before the first beat, there are no servers of former versions")
	}
	live := map[string]registry.Server{"self": {ID: "self", Watching: 1}}
	for _, s := range []registry.Server{{ID: "a", Can: "changes", Watching: 3}, {ID: "b", Can: "changes"}} {
		live[s.ID] = s
	}
	m.setLive(live)
	m.UserChanged("ann", nil)
	expect()
	m.UserChanged("ann", []string{"b", "new", "self"})
	expect("b ann", "new ann")
	if m.HasFormer() {
		t.Error("there are servers of former versions")
	}

	live["old"], live["older"] = registry.Server{ID: "old", Watching: 3}, registry.Server{ID: "older"}
	m.setLive(live)
	m.UserChanged("bob", []string{"a"})
	expect("a bob", "old bob")
	if !m.HasFormer() {
		t.Error("there are no servers of former versions")
	}
}
