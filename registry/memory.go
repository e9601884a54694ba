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
	dead     map[string]time.Time // until when
	held     sets                 // channels by server
	clients  sets                 // clients by server
	channels lists                // servers by channel; its keys are ch_list
	watchers lists                // servers by channel
	rosters  map[rosterKey]*roster
	version  int64 // of the roster that was changed last
	users    map[string]*user
}

// lease is a server's description and the time when it ends.
type lease struct {
	server Server
	ends   time.Time
}

// user has the clients of one user, by client, until they expire together.
type user struct {
	clients map[string]Binding
	ends    time.Time
}

// NewMemory returns an empty registry. opts have passed [Options.Validate].
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

// sets are sets of names by key. As in Redis an empty set has no key.
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

// some are up to n names of a set, sorted.
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

// lists are small sets of names by key, each sorted and never modified: a change makes a new list.
// So a list can be given away as it is. Each push looks up the servers of a channel. To collect and
// sort the keys of a map took ten times as long and made 4 allocations: 4 % of what a push costs in
// all.
type lists map[string][]string

func (l lists) add(key, name string) {
	old := l[key]
	if i, found := slices.BinarySearch(old, name); !found {
		l[key] = slices.Concat(old[:i], []string{name}, old[i:])
	}
}

// remove leaves no key for an empty list, as in Redis.
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

// sorted is the list of key, nil for none. It must not be changed.
func (l lists) sorted(key string) []string { return slices.Clip(l[key]) }
