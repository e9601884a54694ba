package presence

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"switchboard/internal/meter"
)

const (
	// countPageSize is how many members one store call reads during a count.
	countPageSize = 1000
	// countTTL is how long a count of users is reused, for each countedPerTTL clients. A count reads
	// all rosters of the channel, which can cost a thousand times more than a page with one client.
	countTTL      = time.Second
	countedPerTTL = 10_000
	// maxCounts bounds the counts that are kept.
	maxCounts = 1024
)

// userCounts caches the numbers of users in channels.
type userCounts struct {
	mu     sync.Mutex // guards the field below
	counts map[string]*userCount
}

// userCount is one count, finished or in progress.
type userCount struct {
	done    chan struct{} // closed when the fields below are set
	users   int
	err     error
	expires time.Time
}

// countUsers returns how many different users the channel has on the servers, or how many aliases
// if it shows them. The number is at most countTTL old, for each countedPerTTL clients. In a
// channel that is not large, a change in the number of clients causes a new count.
func (p *Presence) countUsers(ctx context.Context, channel string, servers []string, clients int) (int, error) {
	key := channel + "\n" + strings.Join(servers, "\n") // a newline is in neither
	if clients <= p.opts.LargeChannel {
		key += "\n" + strconv.Itoa(clients)
	}
	c, started := p.counts.getOrStart(key)
	if started {
		p.runCount(meter.Of(ctx), c, channel, servers, clients) // not in the pool: all its workers may be waiting here
	}
	select {
	case <-c.done:
		return c.users, c.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// getOrStart returns the count for a key. If started is true, the count is new and the caller must
// run it.
func (u *userCounts) getOrStart(key string) (c *userCount, started bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if c := u.counts[key]; c != nil && !c.expired(now) {
		return c, false
	}
	if len(u.counts) >= maxCounts {
		u.evictLocked(now)
	}
	if u.counts == nil {
		u.counts = map[string]*userCount{}
	}
	c = &userCount{done: make(chan struct{})}
	u.counts[key] = c
	return c, true
}

// evictLocked removes the expired counts, or all of them if none has expired.
func (u *userCounts) evictLocked(now time.Time) {
	for key, c := range u.counts {
		if c.expired(now) {
			delete(u.counts, key)
		}
	}
	if len(u.counts) >= maxCounts {
		clear(u.counts)
	}
}

// expired reports whether a finished count is too old or failed.
func (c *userCount) expired(now time.Time) bool {
	select {
	case <-c.done:
		return c.err != nil || !now.Before(c.expires)
	default:
		return false
	}
}

// runCount runs a count. It has its own context, because callers with other contexts wait for it. m
// counts what is read, and may be nil.
func (p *Presence) runCount(m *meter.Meter, c *userCount, channel string, servers []string, clients int) {
	ctx, cancel := p.context()
	defer cancel()
	c.users, c.err = p.readUsers(meter.With(ctx, m), channel, servers)
	c.expires = time.Now().Add(countTTL * time.Duration(1+clients/countedPerTTL))
	close(c.done)
}

// readUsers counts the users in the rosters.
func (p *Presence) readUsers(ctx context.Context, channel string, servers []string) (int, error) {
	users, aliased := map[string]struct{}{}, p.showsAliases(channel)
	for _, server := range servers {
		for cursor, more := "", true; more; more = cursor != "" {
			members, next, err := p.opts.Store.RosterPage(ctx, server, channel, cursor, countPageSize)
			if err != nil {
				return 0, err
			}
			for _, m := range members {
				switch {
				case aliased && isAliasMember(m):
					users[m.Client] = struct{}{}
				case !aliased && m.User != "":
					users[m.User] = struct{}{}
				}
			}
			cursor = next
		}
	}
	return len(users), nil
}
