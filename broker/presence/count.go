package presence

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// countPage is how many members one call reads that only counts.
	countPageSize = 1000
	// countFor is how long a count of users is good for others that ask. To count them all rosters
	// of the channel are read, which may be a thousand times what a page of one client takes.
	countTTL = time.Second
	// maxCounts bounds the counts that are remembered.
	maxCounts = 1024
)

// userCounts are counts of the users in channels, each good for countFor.
type userCounts struct {
	mu     sync.Mutex // guards the field below
	counts map[string]*userCount
}

// userCount is one count, finished or under way.
type userCount struct {
	done    chan struct{} // closed when the fields below are there
	users   int
	err     error
	expires time.Time
}

// countUsers is how many different users the channel has on the servers, a second ago at most. Of a
// channel that is not large it is counted anew when the number of clients has changed.
func (p *Presence) countUsers(ctx context.Context, channel string, servers []string, clients int) (int, error) {
	key := channel + "\n" + strings.Join(servers, "\n") // neither has newlines
	if clients <= p.opts.LargeChannel {
		key += "\n" + strconv.Itoa(clients)
	}
	c, mine := p.counts.getOrStart(key)
	if mine {
		p.runCount(c, channel, servers) // not in the pool, whose workers may all be waiting here
	}
	select {
	case <-c.done:
		return c.users, c.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// begin is the count for a key. When mine is true the caller has to make it.
func (u *userCounts) getOrStart(key string) (c *userCount, mine bool) {
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

// forgetLocked drops the counts that are over, or all of them where none is.
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

// over says that a finished count is not good any more.
func (c *userCount) expired(now time.Time) bool {
	select {
	case <-c.done:
		return c.err != nil || !now.Before(c.expires)
	default:
		return false
	}
}

// count makes a count, for all that wait for it, so that none of their contexts ends it.
func (p *Presence) runCount(c *userCount, channel string, servers []string) {
	ctx, cancel := p.context()
	defer cancel()
	c.users, c.err = p.readUsers(ctx, channel, servers)
	c.expires = time.Now().Add(countTTL)
	close(c.done)
}

// readUsers reads the rosters.
func (p *Presence) readUsers(ctx context.Context, channel string, servers []string) (int, error) {
	users := map[string]struct{}{}
	for _, server := range servers {
		for cursor, more := "", true; more; more = cursor != "" {
			members, next, err := p.opts.Store.RosterPage(ctx, server, channel, cursor, countPageSize)
			if err != nil {
				return 0, err
			}
			for _, m := range members {
				if m.User != "" {
					users[m.User] = struct{}{}
				}
			}
			cursor = next
		}
	}
	return len(users), nil
}
