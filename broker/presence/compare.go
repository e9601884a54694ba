package presence

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"switchboard/broker/work"
	"switchboard/internal/wire"
)

const (
	// comparedPerCall is how many rosters, channels or users one store call compares.
	comparedPerCall = 128
	// clientsPerCall is how many clients of a server one store call returns.
	clientsPerCall = 512
	// clientsPerUser is how many clients of a server are read for each watched user. If it has more,
	// reading all watched users is cheaper.
	clientsPerUser = 4
)

// Compare finds the views that differ from what the servers have in the store, because hints of
// these servers may have been lost, and reads only these. nil means all live servers except this
// one. Servers without a lease are left out: nothing of them is shown. The calls are spread over
// pace. What could not be compared is compared again by later ticks; Compare returns the first
// error.
//
// Only a server itself writes its rosters and the bindings of its clients, and before that it lists
// the channel or the client as its own. So a server that holds none costs two commands, whatever is
// watched.
func (p *Presence) Compare(ctx context.Context, servers []string, pace time.Duration) error {
	if servers == nil {
		self := p.opts.ServerID()
		for id := range *p.live.Load() {
			if id != self {
				servers = append(servers, id)
			}
		}
	}
	live := slices.DeleteFunc(slices.Clone(servers), func(id string) bool { return !p.isLive(id) })
	slices.Sort(live)
	c := &comparison{p: p, views: p.allViews(), users: p.allUserViews(), failed: map[string]bool{}}
	if len(c.views)+len(c.users) > 0 {
		c.run(ctx, slices.Compact(live), pace)
	}
	for _, id := range servers {
		if c.failed[id] {
			p.comparisons.Failed(id)
		} else {
			p.comparisons.Done(id)
		}
	}
	return c.err
}

// compareLater compares servers in the background.
func (p *Presence) compareLater(servers []string) {
	p.opts.Pool.Go(func() {
		ctx, cancel := p.context()
		defer cancel()
		if err := p.Compare(ctx, servers, 0); err != nil {
			p.opts.Logger.Warn().Err(err).Msg("presence not compared with the store; a later tick tries again")
		}
	})
}

// retryComparisons repeats the comparisons that failed, each with pauses of its own.
func (p *Presence) retryComparisons() {
	if servers := p.comparisons.Tick(); len(servers) > 0 {
		p.compareLater(servers)
	}
}

// MarkDirty has the rosters of a server in the channels read again, and the users, as far as they
// are watched here: the server may have changed them without a hint.
func (p *Presence) MarkDirty(server string, channels, users []string) {
	for _, channel := range channels {
		if v := p.view(channel); v != nil {
			v.markDirty(server)
		}
	}
	for _, user := range users {
		p.UserChanged(user)
	}
}

// comparison is one run of Compare.
type comparison struct {
	p     *Presence
	views []*View
	users []*UserView

	mu     sync.Mutex // guards the fields below
	failed map[string]bool
	err    error
}

// fail notes that something of the servers was not compared.
func (c *comparison) fail(err error, servers ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	for _, id := range servers {
		c.failed[id] = true
	}
}

// heldCount is how many channels and clients a server holds.
type heldCount struct {
	server            string
	channels, clients int
}

func (c *comparison) run(ctx context.Context, servers []string, pace time.Duration) {
	// So that a simulation repeats it.
	slices.SortFunc(c.views, func(x, y *View) int { return strings.Compare(x.channel, y.channel) })
	slices.SortFunc(c.users, func(x, y *UserView) int { return strings.Compare(x.user, y.user) })
	held := c.count(ctx, servers)
	c.rosters(ctx, held, pace*2/3)
	c.compareUsers(ctx, held, pace/3)
}

// count reads how much each of the servers holds.
func (c *comparison) count(ctx context.Context, servers []string) []heldCount {
	counts := make([]heldCount, len(servers))
	var calls sync.WaitGroup
	for i, id := range servers {
		calls.Go(func() { // at the same time, so that the calls share round trips
			channels, clients, err := c.p.opts.Store.HeldCounts(ctx, id)
			if counts[i] = (heldCount{id, channels, clients}); err != nil {
				c.fail(err, id)
			}
		})
	}
	calls.Wait()
	return slices.DeleteFunc(counts, func(h heldCount) bool { return c.failed[h.server] })
}

// rostersOf are views whose rosters of one server are compared with one store call.
type rostersOf struct {
	server string
	views  []*View
}

// rosters compares the rosters of the servers.
func (c *comparison) rosters(ctx context.Context, held []heldCount, pace time.Duration) {
	var asked []rostersOf
	found := map[string][]*View{} // by server: the views that may have a roster of it
	for _, h := range held {
		var unknown []*View
		for _, v := range c.views {
			switch {
			case v.names(h.server):
				found[h.server] = append(found[h.server], v)
			case h.channels > 0:
				unknown = append(unknown, v)
			}
		}
		for chunk := range slices.Chunk(unknown, comparedPerCall) {
			asked = append(asked, rostersOf{h.server, chunk})
		}
	}
	work.InChunks(ctx, asked, 1, pace/2, func(one []rostersOf) {
		r := one[0]
		holds, err := c.p.opts.Store.HoldsChannels(ctx, r.server, channelsOf(r.views))
		if err != nil {
			c.fail(err, r.server)
			return
		}
		for i, v := range r.views {
			if holds[i] {
				found[r.server] = append(found[r.server], v)
			}
		}
	})
	var compared []rostersOf
	for _, server := range slices.Sorted(maps.Keys(found)) {
		for chunk := range slices.Chunk(found[server], comparedPerCall) {
			compared = append(compared, rostersOf{server, chunk})
		}
	}
	work.InChunks(ctx, compared, 1, pace/2, func(one []rostersOf) { c.compareRosters(ctx, one[0]) })
}

// compareRosters compares rosters of a server with one store call.
func (c *comparison) compareRosters(ctx context.Context, r rostersOf) {
	views, before := make([]*View, 0, len(r.views)), make([]int64, 0, len(r.views))
	for _, v := range r.views {
		if version, compare := v.versionOf(r.server); compare {
			views, before = append(views, v), append(before, version)
		}
	}
	if len(views) == 0 {
		return
	}
	stored, err := c.p.opts.Store.RosterVersions(ctx, r.server, channelsOf(views))
	if err != nil {
		c.fail(err, r.server)
		return
	}
	for i, v := range views {
		v.compare(r.server, before[i], stored[i])
	}
}

func channelsOf(views []*View) []string {
	channels := make([]string, len(views))
	for i, v := range views {
		channels[i] = v.channel
	}
	return channels
}

// names reports whether the view has a roster of the server.
func (v *View) names(server string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.rosters[server] != nil
}

// versionOf returns the version of a roster. compare is false if the roster will be read in any
// case. A read that has begun does not count: it may be from before the loss of a hint.
func (v *View) versionOf(server string) (version int64, compare bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.versionLocked(server), !v.allDirty && !v.dirty[server]
}

func (v *View) versionLocked(server string) int64 {
	if r := v.rosters[server]; r != nil {
		return r.version
	}
	return 0
}

// compare has a roster read if the store has another version of it. before was the view's version
// before the store was asked. A roster that has changed meanwhile has no gap: it may be ahead of
// the answer.
func (v *View) compare(server string, before, stored int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch have := v.versionLocked(server); {
	case stored != before && stored != have:
		v.markDirtyLocked(server)
	case stored == 0 && have == 0 && v.p.isLive(server):
		v.seenVersions[server] = math.MaxInt64 // as after a read, see applyRoster
	}
}

// compareUsers compares the users that have, or may have, clients on the servers.
func (c *comparison) compareUsers(ctx context.Context, held []heldCount, pace time.Duration) {
	watched := len(c.users)
	if watched == 0 {
		return
	}
	var list []*UserView
	if slices.ContainsFunc(held, func(h heldCount) bool { return h.clients > clientsPerUser*watched }) {
		list = c.users
	} else {
		on := map[string]bool{} // users of clients of the servers
		for _, h := range held {
			if h.clients > 0 {
				c.readClients(ctx, h.server, on)
			}
		}
		for _, v := range c.users {
			if on[v.user] || v.mayBeOn(held) {
				list = append(list, v)
			}
		}
	}
	work.InChunks(ctx, list, comparedPerCall, pace, func(chunk []*UserView) {
		if err := c.compareUserChunk(ctx, chunk); err != nil {
			for _, h := range held {
				c.fail(err, h.server)
			}
		}
	})
}

// readClients adds the users of all clients that the server holds.
func (c *comparison) readClients(ctx context.Context, server string, users map[string]bool) {
	for cursor := ""; ; {
		clients, next, err := c.p.opts.Store.ClientPage(ctx, server, cursor, clientsPerCall)
		if err != nil {
			c.fail(err, server)
			return
		}
		for _, client := range clients {
			users[wire.UserOf(client)] = true
		}
		if cursor = next; next == "" {
			return
		}
	}
}

// compareUserChunk compares users with one store call.
func (c *comparison) compareUserChunk(ctx context.Context, chunk []*UserView) error {
	var views []*UserView
	var users []string
	var before [][]string
	for _, v := range chunk {
		if servers, compare := v.serversToCompare(); compare {
			views, users, before = append(views, v), append(users, v.user), append(before, servers)
		}
	}
	if len(views) == 0 {
		return nil
	}
	stored, err := c.p.opts.Store.Users(ctx, users)
	if err != nil {
		return err
	}
	for i, v := range views {
		v.compare(before[i], serversOf(stored[i]))
	}
	return nil
}

// mayBeOn reports whether one of the servers has clients of the user, as far as the view knows. A
// read that has begun may find one.
func (v *UserView) mayBeOn(servers []heldCount) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.isReadLocked() || slices.ContainsFunc(servers, func(h heldCount) bool { return slices.Contains(v.servers, h.server) })
}

// isReadLocked reports whether a read of the store has begun and is not applied yet.
func (v *UserView) isReadLocked() bool { return v.inFlight || !v.initialized }

// markDirtyIfOn has the user read again if one of the servers has clients of it.
func (v *UserView) markDirtyIfOn(servers []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if slices.ContainsFunc(v.servers, func(s string) bool { return slices.Contains(servers, s) }) {
		v.markDirtyLocked()
	}
}

// serversToCompare returns the servers that have clients of the user. compare is false if the user
// will be read in any case. A read that has begun may be from before the loss of a hint, so it is
// repeated.
func (v *UserView) serversToCompare() (servers []string, compare bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.isReadLocked() {
		v.markDirtyLocked()
	}
	return v.servers, !v.dirty
}

// compare has the user read if the store has other servers. before were the view's servers before
// the store was asked. A view that was read since then is up to date.
func (v *UserView) compare(before, stored []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !slices.Equal(stored, before) && !slices.Equal(stored, v.servers) {
		v.markDirtyLocked()
	}
}
