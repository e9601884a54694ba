package cluster

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"switchboard/broker/api"
	"switchboard/internal/sketch"
)

// onlineTimeout bounds the calls for one count.
const onlineTimeout = time.Second

// summaryShare is the part of a processor that a server spends on summaries at most: 1/20. Each
// user takes about 1 µs, most of it for the memory of the session.
const summaryShare = 20

// onlineAge returns how long a summary of this server's users is reused, and a count: 5 s, unless
// the time between two beats is not 2 s. A count is therefore up to twice as old.
func (c *Cluster) onlineAge() time.Duration { return 5 * c.opts.Beat / 2 }

// onlineUsers counts the users of all servers. A user with connections on two servers is counted
// once: the server that counts asks each live server for a sketch of its users, and merges them.
type onlineUsers struct {
	flight singleflight.Group

	mu      sync.Mutex             // guards the fields below
	own     userSummary            // of this server
	ownEnds time.Time              // until when it is reused; zero for never made
	servers map[string]userSummary // the last answers of the other live servers
	count   api.UserCount
	known   bool // count is valid: each server has answered at least once
	countAt time.Time
}

// userSummary is the answer to callUsers.
type userSummary struct {
	Users  int    `json:"users"`
	Sketch []byte `json:"sketch"` // see sketch.AppendBinary
}

// OnlineUsers implements api.Cluster. A server that does not answer, but has a lease, counts with
// its last answer.
func (c *Cluster) OnlineUsers(context.Context) (api.UserCount, bool) {
	o := &c.online
	o.mu.Lock()
	count, known, fresh := o.count, o.known, time.Since(o.countAt) < c.onlineAge()
	o.mu.Unlock()
	if fresh {
		return count, known
	}
	_, _, _ = o.flight.Do("count", func() (any, error) { // callers with other contexts wait for it, too
		ctx, cancel := context.WithTimeout(context.Background(), onlineTimeout)
		defer cancel()
		c.countUsers(ctx)
		return nil, nil
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count, o.known
}

// countUsers asks the servers and sets the count.
func (c *Cluster) countUsers(ctx context.Context) {
	own, servers := c.userSummary(), c.others()
	answers := ask[userSummary](ctx, c, servers, callUsers, nil)
	o := &c.online
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.servers
	o.servers, o.known = make(map[string]userSummary, len(servers)), true
	summaries := []userSummary{own}
	for _, s := range servers {
		summary, found := answers[s.ID]
		if !found {
			summary, found = before[s.ID]
		}
		if !found {
			o.known = false
			continue
		}
		o.servers[s.ID] = summary
		summaries = append(summaries, summary)
	}
	o.count, o.countAt = mergeUsers(summaries), time.Now()
}

// mergeUsers returns the number of different users. It is at least that of the server with the most
// users, and at most the sum of all.
func mergeUsers(summaries []userSummary) api.UserCount {
	var all sketch.Sketch
	least, most, readable := 0, 0, true
	for _, s := range summaries {
		var one sketch.Sketch
		if one.UnmarshalBinary(s.Sketch) == nil {
			all.Merge(&one)
		} else {
			readable = false // of another version; the bounds hold
		}
		least, most = max(least, s.Users), most+s.Users
	}
	n, exact := all.Count()
	return api.UserCount{Users: min(max(n, least), most), Exact: exact && readable || least == most}
}

// userSummary summarizes the users of this server, or returns a summary of the last seconds.
func (c *Cluster) userSummary() userSummary {
	o := &c.online
	o.mu.Lock()
	own, fresh := o.own, time.Now().Before(o.ownEnds)
	o.mu.Unlock()
	if fresh {
		return own
	}
	made, _, _ := o.flight.Do("own", func() (any, error) { return c.summarizeUsers(), nil }) // other servers ask at once
	return made.(userSummary)
}

// summarizeUsers makes the summary of this server's users.
func (c *Cluster) summarizeUsers() userSummary {
	o, began := &c.online, time.Now()
	var users sketch.Sketch
	c.parts.Sessions.EachUser(users.Add)
	_, n := c.parts.Sessions.Counts()
	if exact, ok := users.Count(); ok {
		n = exact // of the same moment
	}
	own := userSummary{Users: n}
	own.Sketch, _ = users.AppendBinary(nil) // it never fails
	o.mu.Lock()
	defer o.mu.Unlock()
	o.own, o.ownEnds = own, time.Now().Add(max(c.onlineAge(), summaryShare*time.Since(began)))
	return own
}
