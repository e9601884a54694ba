package member

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"switchboard/registry"
)

// leaseList is a registry with listed servers, some of which have leases, and none of which are in
// the list that beats return.
type leaseList struct {
	Registry
	live, listed []string
	can          map[string]string // Can of the live ones
	lists, reads int               // calls of Listed and Lease
}

func (l *leaseList) Listed(context.Context) ([]string, error) {
	l.lists++
	return l.listed, nil
}

func (l *leaseList) Lease(_ context.Context, id string) (registry.Server, bool, error) {
	l.reads++
	if !slices.Contains(l.live, id) {
		return registry.Server{}, false, nil
	}
	return registry.Server{ID: id, Can: l.can[id]}, true, nil
}

func servers(ids ...string) (list []registry.Server) {
	for _, id := range ids {
		list = append(list, registry.Server{ID: id})
	}
	return list
}

// TestKnownServers applies changes, and checks which servers are live, which are reported as
// unlisted, and that the list is only read while it may have others.
func TestKnownServers(t *testing.T) {
	k, list := newKnown(), &leaseList{}
	for i, step := range []struct {
		changes  registry.Changes
		listed   []string
		live     []string // by their leases
		want     string   // live
		unlisted string
		reads    string // calls of Listed and of Lease, in all
	}{
		{registry.Changes{All: true, Changed: servers("a", "b")}, []string{"a", "b"}, nil, "[a b]", "[]", "0 0"},
		{registry.Changes{}, []string{"a", "b"}, nil, "[a b]", "[]", "0 0"},
		// b ends, and a janitor removes it.
		{registry.Changes{Ended: []string{"b"}}, []string{"a", "b"}, nil, "[a]", "[]", "1 0"},
		{registry.Changes{}, []string{"a", "b"}, nil, "[a]", "[]", "2 0"},
		{registry.Changes{}, []string{"a"}, nil, "[a]", "[b]", "3 0"},
		{registry.Changes{}, []string{"a"}, nil, "[a]", "[]", "3 0"},
		// c starts, ends, and comes back.
		{registry.Changes{Changed: servers("c")}, []string{"a", "c"}, nil, "[a c]", "[]", "3 0"},
		{registry.Changes{Ended: []string{"c"}}, []string{"a", "c"}, nil, "[a]", "[]", "4 0"},
		{registry.Changes{Changed: servers("c")}, []string{"a", "c"}, nil, "[a c]", "[]", "4 0"},
		// c leaves, and a former version starts in the same beat.
		{registry.Changes{Ended: []string{"c"}}, []string{"a", "old"}, []string{"old"}, "[a old]", "[c]", "5 1"},
		{registry.Changes{}, []string{"a", "old"}, []string{"old"}, "[a old]", "[]", "6 2"},
		{registry.Changes{}, []string{"a", "old"}, nil, "[a]", "[]", "7 3"},
		{registry.Changes{}, []string{"a", "old"}, []string{"old"}, "[a old]", "[]", "8 4"},
		{registry.Changes{}, []string{"a", "old"}, nil, "[a]", "[]", "9 5"},
		{registry.Changes{}, []string{"a"}, nil, "[a]", "[old]", "10 5"},
		// A server that was dead before this one started is not reported.
		{registry.Changes{}, []string{"a", "dead"}, nil, "[a]", "[]", "11 6"},
		{registry.Changes{}, []string{"a"}, nil, "[a]", "[]", "12 6"},
		// All servers are read: b is new, and d has ended.
		{registry.Changes{Changed: servers("d")}, []string{"a", "d"}, nil, "[a d]", "[]", "12 6"},
		{registry.Changes{All: true, Changed: servers("a", "b")}, []string{"a", "b"}, nil, "[a b]", "[d]", "13 6"},
	} {
		list.listed, list.live = step.listed, step.live
		k.apply(step.changes)
		unlisted, err := k.readListed(t.Context(), list, "a", len(step.listed))
		live := slices.Sorted(maps.Keys(k.live()))
		if reads := fmt.Sprint(list.lists, list.reads); err != nil || fmt.Sprint(live) != step.want || fmt.Sprint(unlisted) != step.unlisted || reads != step.reads {
			t.Errorf("step %d: live %v, unlisted %v, %s reads, %v; want %s, %s and %s", i, live, unlisted, reads, err, step.want, step.unlisted, step.reads)
		}
	}
}

// TestListReaders checks whether servers may be listed that find channels only in ch_list.
func TestListReaders(t *testing.T) {
	const now, before = "changes,channel_sets", "changes"
	server := func(id, can string) registry.Server { return registry.Server{ID: id, Can: can} }
	k, list := newKnown(), &leaseList{can: map[string]string{}}
	for i, step := range []struct {
		changes registry.Changes
		listed  []string
		leases  map[string]string // of servers that are not in the list of live servers: their Can
		want    bool
	}{
		{registry.Changes{All: true, Changed: []registry.Server{server("a", now), server("b", now)}}, []string{"a", "b"}, nil, false},
		{registry.Changes{Changed: []registry.Server{server("c", before)}}, []string{"a", "b", "c"}, nil, true},
		{registry.Changes{Ended: []string{"c"}}, []string{"a", "b", "c"}, nil, true}, // it may come back
		{registry.Changes{}, []string{"a", "b"}, nil, false},
		// A server of this version is killed: it does not read ch_list when it comes back.
		{registry.Changes{Ended: []string{"b"}}, []string{"a", "b"}, nil, false},
		{registry.Changes{}, []string{"a", "b"}, nil, false},
		{registry.Changes{}, []string{"a", "old"}, map[string]string{"old": ""}, true},
		{registry.Changes{}, []string{"a", "old"}, nil, true}, // its lease has ended
		{registry.Changes{}, []string{"a"}, nil, false},
		// A server of this version is missing in the list of live servers.
		{registry.Changes{}, []string{"a", "d"}, map[string]string{"d": now}, false},
		{registry.Changes{}, []string{"a", "d"}, nil, false},
		{registry.Changes{}, []string{"a", "d"}, nil, false},
		// A server without a lease was never seen.
		{registry.Changes{}, []string{"a", "dead"}, nil, true},
		{registry.Changes{}, []string{"a"}, nil, false},
	} {
		list.listed, list.live, list.can = step.listed, slices.Sorted(maps.Keys(step.leases)), step.leases
		k.apply(step.changes)
		if _, err := k.readListed(t.Context(), list, "a", len(step.listed)); err != nil {
			t.Fatal(err)
		}
		if got := k.hasListReader(); got != step.want {
			t.Errorf("step %d: %t, want %t", i, got, step.want)
		}
	}
	k.found(server("old", ""))
	if !k.hasListReader() {
		t.Error("a server of a former version that was found is not a reader of ch_list")
	}
}

// TestReadsAllServers checks when a beat does not continue the number of the last one.
func TestReadsAllServers(t *testing.T) {
	k := newKnown()
	read := func(epoch uint64) bool {
		all := k.since(epoch) == 0
		k.apply(registry.Changes{All: all, Number: 7, Changed: servers("a")})
		return all
	}
	for i, step := range []struct {
		change func()
		epoch  uint64
		all    bool
	}{
		{func() {}, 0, true},
		{func() {}, 0, false},
		{func() {}, 1, true}, // a failover
		{func() {}, 1, false},
		{func() { k.found(registry.Server{ID: "b"}) }, 1, true},
		{func() {
			if _, err := k.readListed(t.Context(), &leaseList{listed: []string{"b"}}, "a", 1); err != nil {
				t.Error(err)
			}
		}, 1, true}, // a failover has lost the entry in the list
	} {
		step.change()
		if all := read(step.epoch); all != step.all {
			t.Errorf("step %d: all %t, want %t", i, all, step.all)
		}
	}
	for i := 1; !read(1); i++ {
		if i > readAllBeats {
			t.Fatal("after a while, all servers are not read again")
		}
	}
}
