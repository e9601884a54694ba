package member

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"switchboard/registry"
)

// readAllBeats is how many beats pass until a beat reads all live servers, and not only changes. It
// repairs what an unnoticed failover of the store has lost.
const readAllBeats = 30

// known is what a server knows of the servers: the live ones, and those that may still be listed
// without a lease. A server of a former version is not in the list that beats return. While one is
// listed, its lease is read at each beat.
type known struct {
	number int64 // see registry.Changes; 0 if the next beat reads all servers
	epoch  uint64
	beats  int // since the last one that read all servers

	changes map[string]registry.Server // live, by the list that beats return
	leases  map[string]registry.Server // live only by their leases
	gone    map[string]gone            // without a lease, and perhaps listed
}

// gone is a listed server without a lease.
type gone struct {
	wasLive   bool // while this server knew it
	former    bool // only its lease shows that it is back
	readsSets bool // by its last known lease, see registry.Server.ReadsChannelSets
}

func newKnown() known {
	return known{changes: map[string]registry.Server{}, leases: map[string]registry.Server{}, gone: map[string]gone{}}
}

// since returns the number for the next beat of this server.
func (k *known) since(epoch uint64) int64 {
	if epoch != k.epoch || k.beats >= readAllBeats {
		k.epoch, k.number = epoch, 0
	}
	k.beats++
	return k.number
}

// apply applies the changes that a beat returned.
func (k *known) apply(c registry.Changes) {
	k.number = c.Number
	if c.All {
		k.beats = 0
		for id := range k.changes {
			if !slices.ContainsFunc(c.Changed, func(s registry.Server) bool { return s.ID == id }) {
				c.Ended = append(c.Ended, id)
			}
		}
	}
	for _, id := range c.Ended {
		if s, live := k.changes[id]; live {
			delete(k.changes, id)
			k.gone[id] = gone{wasLive: true, readsSets: s.ReadsChannelSets()}
		}
	}
	for _, s := range c.Changed {
		k.changes[s.ID] = s
		delete(k.leases, s.ID)
		delete(k.gone, s.ID)
	}
}

// readListed reads the list of servers if it may have others than the changes say: listed is its
// length. It reads the leases of those, and returns the servers that were live and are no longer
// listed.
func (k *known) readListed(ctx context.Context, r Registry, self string, listed int) (unlisted []string, err error) {
	if len(k.leases)+len(k.gone) == 0 && listed == len(k.changes) {
		return nil, nil
	}
	names, err := r.Listed(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, self) {
		k.number = 0 // a failover has lost the entry, and the next beat restores it
	}
	if err := k.readLeases(ctx, r, names); err != nil {
		return nil, err
	}
	for id := range k.leases {
		if !slices.Contains(names, id) {
			delete(k.leases, id)
			unlisted = append(unlisted, id)
		}
	}
	for id, g := range k.gone {
		if !slices.Contains(names, id) {
			delete(k.gone, id)
			if g.wasLive {
				unlisted = append(unlisted, id)
			}
		}
	}
	slices.Sort(unlisted)
	return unlisted, nil
}

// readLeases reads the leases of the listed servers that are not live by the changes.
func (k *known) readLeases(ctx context.Context, r Registry, names []string) error {
	var mu sync.Mutex // guards leases
	leases := map[string]registry.Server{}
	read := func(id string) bool {
		_, live := k.changes[id]
		g, ended := k.gone[id]
		return !live && (!ended || g.former)
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, id := range names {
		if !read(id) {
			continue
		}
		group.Go(func() error {
			s, live, err := r.Lease(groupCtx, id)
			if err == nil && live {
				mu.Lock()
				defer mu.Unlock()
				leases[id] = s
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, id := range names {
		former, wasLive := k.leases[id]
		if s, live := leases[id]; live {
			k.leases[id] = s
			delete(k.gone, id)
		} else if read(id) {
			delete(k.leases, id)
			g := k.gone[id]
			k.gone[id] = gone{
				wasLive: wasLive || g.wasLive, former: true, readsSets: former.ReadsChannelSets() || g.readsSets,
			}
		}
	}
	return nil
}

// found adds a server with a lease. The next beat reads all servers.
func (k *known) found(s registry.Server) {
	k.leases[s.ID], k.number = s, 0
	delete(k.gone, s.ID)
}

// hasListReader reports whether a server may be listed that finds channels only in ch_list. A
// listed server whose lease this server has never seen may be one.
func (k *known) hasListReader() bool {
	for _, servers := range []map[string]registry.Server{k.changes, k.leases} {
		for _, s := range servers {
			if !s.ReadsChannelSets() {
				return true
			}
		}
	}
	for _, g := range k.gone {
		if !g.readsSets {
			return true
		}
	}
	return false
}

// live returns the live servers by id.
func (k *known) live() map[string]registry.Server {
	live := make(map[string]registry.Server, len(k.changes)+len(k.leases))
	for _, servers := range []map[string]registry.Server{k.leases, k.changes} {
		for id, s := range servers {
			live[id] = s
		}
	}
	return live
}
