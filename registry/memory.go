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

	mu           sync.Mutex // guards the fields below
	listed       map[string]struct{}
	leases       map[string]lease
	live         liveList
	dead         map[string]time.Time // end of the tombstone, by server
	died         []Death              // in the order of their times
	heldChannels sets                 // by server
	heldClients  sets                 // by server
	channels     sortedSets           // servers by channel; its keys are ch_list
	watchers     sortedSets           // servers by channel
	rosters      map[rosterKey]*roster
	version      int64 // of the last changed roster
	users        map[string]*user
	userWatchers map[string]map[string]time.Time // times of registration, by user and server
	revoked      map[tokensOf]revocation
	subscribed   map[tokensOf]subscriptionList
	spent        map[sender]spent
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
		opts:         opts.withDefaults(),
		listed:       map[string]struct{}{},
		leases:       map[string]lease{},
		live:         newLiveList(),
		dead:         map[string]time.Time{},
		heldChannels: sets{},
		heldClients:  sets{},
		channels:     sortedSets{},
		watchers:     sortedSets{},
		rosters:      map[rosterKey]*roster{},
		users:        map[string]*user{},
		userWatchers: map[string]map[string]time.Time{},
		revoked:      map[tokensOf]revocation{},
		subscribed:   map[tokensOf]subscriptionList{},
		spent:        map[sender]spent{},
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

// sortedSets is small sets of names by key, as sorted slices. A change makes a new slice, so
// callers can keep a slice that they got. Each push looks up the servers of a channel. With maps,
// whose keys had to be collected and sorted, a lookup took ten times as long, made 4 allocations,
// and was 4 % of the cost of a push.
type sortedSets map[string][]string

func (s sortedSets) add(key, name string) {
	old := s[key]
	if i, found := slices.BinarySearch(old, name); !found {
		s[key] = slices.Concat(old[:i], []string{name}, old[i:])
	}
}

// remove removes the name, and the key of an empty set, as Redis does.
func (s sortedSets) remove(key, name string) {
	old := s[key]
	i, found := slices.BinarySearch(old, name)
	switch {
	case found && len(old) == 1:
		delete(s, key)
	case found:
		s[key] = slices.Concat(old[:i], old[i+1:])
	}
}

// get returns the names of key, sorted, nil for none. The caller must not change its elements.
func (s sortedSets) get(key string) []string { return slices.Clip(s[key]) }

// recordBytes is about how many bytes Redis sends for a member or a client besides its text.
const recordBytes = 32
