package presence

import (
	"context"
	"slices"
	"time"

	"switchboard/broker/work"
	"switchboard/internal/wire"
)

const (
	// clientsPerCall is how many clients of a server one store call returns.
	clientsPerCall = 512
	// clientsPerUser is how many clients of a server are read for each watched user. If it has more,
	// reading all watched users is cheaper.
	clientsPerUser = 4
)

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
	part := work.PartOf(c.p.opts.Master, func(v *UserView) string { return v.user })
	work.InParts(ctx, c.take(list), part, comparedPerCall, pace, func(chunk []*UserView) (answers bool) {
		err := c.compareUserChunk(ctx, chunk)
		if err != nil {
			c.fail(err, c.servers...) // other parts rely on this one
		}
		return !work.TimedOut(err)
	}, func(*UserView) {})
}

// take returns those of the users that no other part of the comparison has taken. To compare them
// once is enough.
func (c *comparison) take(users []*UserView) (mine []*UserView) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range users {
		if !c.taken[v] {
			c.taken[v] = true
			mine = append(mine, v)
		}
	}
	return mine
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
