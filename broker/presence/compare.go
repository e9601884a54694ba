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
)

// comparedPerCall is how many rosters, channels or users one store call compares.
const comparedPerCall = 128

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
	c := &comparison{
		p: p, servers: slices.Compact(live), views: p.allViews(), users: p.allUserViews(), failed: map[string]bool{}, taken: map[*UserView]bool{},
	}
	if len(c.views)+len(c.users) > 0 {
		c.run(ctx, pace)
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

// comparison is one run of Compare.
type comparison struct {
	p       *Presence
	servers []string
	views   []*View
	users   []*UserView

	mu     sync.Mutex // guards the fields below
	failed map[string]bool
	err    error
	taken  map[*UserView]bool // a part of the comparison compares them
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

// run compares what the servers hold, the servers of each part of the store on their own: the lists
// of what a server holds are in one part.
func (c *comparison) run(ctx context.Context, pace time.Duration) {
	// So that a simulation repeats it.
	slices.SortFunc(c.views, func(x, y *View) int { return strings.Compare(x.channel, y.channel) })
	slices.SortFunc(c.users, func(x, y *UserView) int { return strings.Compare(x.user, y.user) })
	work.EachPart(c.servers, c.p.opts.Master, func(servers []string) {
		held := c.count(ctx, servers)
		if c.p.opts.Master == nil {
			c.rosters(ctx, held, pace*2/3)
			c.compareUsers(ctx, held, pace/3)
			return
		}
		var both sync.WaitGroup
		both.Go(func() { c.rosters(ctx, held, pace) })
		both.Go(func() { c.compareUsers(ctx, held, pace) })
		both.Wait()
	})
}

// isFailed reports whether something of a server was not compared.
func (c *comparison) isFailed(server string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed[server]
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
	return slices.DeleteFunc(counts, func(h heldCount) bool { return c.isFailed(h.server) })
}

// rostersOf are views whose rosters of one server are compared with one store call. All rosters are
// in one part of the store, except in a call about the list of the server.
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
		if c.isFailed(r.server) {
			return // the list of a server that did not answer does not answer now
		}
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
		for _, views := range work.Parts(found[server], work.PartOf(c.p.opts.Master, (*View).name)) {
			for chunk := range slices.Chunk(views, comparedPerCall) {
				compared = append(compared, rostersOf{server, chunk})
			}
		}
	}
	work.InParts(ctx, compared, work.PartOf(c.p.opts.Master, rostersOf.first), 1, pace/2, func(one []rostersOf) (answers bool) {
		return !work.TimedOut(c.compareRosters(ctx, one[0]))
	}, func(r rostersOf) { c.fail(nil, r.server) })
}

func (v *View) name() string { return v.channel }

// first returns a channel in the part of the store that has all of the views' channels.
func (r rostersOf) first() string { return r.views[0].channel }

// compareRosters compares rosters of a server with one store call.
func (c *comparison) compareRosters(ctx context.Context, r rostersOf) error {
	views, before := make([]*View, 0, len(r.views)), make([]int64, 0, len(r.views))
	for _, v := range r.views {
		if version, compare := v.versionOf(r.server); compare {
			views, before = append(views, v), append(before, version)
		}
	}
	if len(views) == 0 {
		return nil
	}
	stored, err := c.p.opts.Store.RosterVersions(ctx, r.server, channelsOf(views))
	if err != nil {
		c.fail(err, r.server)
		return err
	}
	for i, v := range views {
		v.compare(r.server, before[i], stored[i])
	}
	return nil
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
