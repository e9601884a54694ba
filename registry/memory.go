package registry

import (
	"slices"
	"sync"
	"time"
)

// Memory is the registry of a broker that runs alone. It behaves like [Redis], and nothing outlives
// the process. Its methods are safe for concurrent use.
type Memory struct {
	opts Options

	mu       sync.Mutex // guards the fields below
	listed   map[string]struct{}
	leases   map[string]lease
	dead     map[string]time.Time // end of the tombstone, by server
	held     sets                 // channels by server
	clients  sets                 // clients by server
	channels lists                // servers by channel; its keys are ch_list
	watchers lists                // servers by channel
	rosters  map[rosterKey]*roster
	version  int64 // of the last changed roster
	users    map[string]*user
}

// lease is a server's description and the time when the lease ends.
type lease struct {
	server Server
	ends   time.Time
}

// user is the clients of one user, which expire at the same time.
type user struct {
	clients map[string]Binding
	ends    time.Time
}

// NewMemory returns an empty registry. opts must be valid, see [Options.Validate].
func NewMemory(opts Options) *Memory {
	return &Memory{
		opts:     opts.withDefaults(),
		listed:   map[string]struct{}{},
		leases:   map[string]lease{},
		dead:     map[string]time.Time{},
		held:     sets{},
		clients:  sets{},
		channels: lists{},
		watchers: lists{},
		rosters:  map[rosterKey]*roster{},
		users:    map[string]*user{},
	}
}

// sets is sets of names by key. As in Redis, an empty set has no key.
type sets map[string]map[string]struct{}

func (s sets) add(key, name string) {
	if s[key] == nil {
		s[key] = map[string]struct{}{}
	}
	s[key][name] = struct{}{}
}

func (s sets) remove(key, name string) {
	delete(s[key], name)
	if len(s[key]) == 0 {
		delete(s, key)
	}
}

// some returns up to n names of a set, sorted.
func (s sets) some(key string, n int) []string {
	var names []string
	for name := range s[key] {
		if len(names) == max(n, 1) {
			break
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// lists is small sets of names by key, as sorted slices. A change makes a new slice, so callers can
// keep a slice that they got. Each push looks up the servers of a channel: collecting and sorting
// the keys of a map took ten times as long and made 4 allocations, 4 % of the cost of a push.
type lists map[string][]string

func (l lists) add(key, name string) {
	old := l[key]
	if i, found := slices.BinarySearch(old, name); !found {
		l[key] = slices.Concat(old[:i], []string{name}, old[i:])
	}
}

// remove removes the name, and the key of an empty list, as Redis does.
func (l lists) remove(key, name string) {
	old := l[key]
	i, found := slices.BinarySearch(old, name)
	switch {
	case found && len(old) == 1:
		delete(l, key)
	case found:
		l[key] = slices.Concat(old[:i], old[i+1:])
	}
}

// sorted returns the list of key, nil for none. The caller must not change its elements.
func (l lists) sorted(key string) []string { return slices.Clip(l[key]) }
