package peer

import (
	"sync"
	"time"
)

const (
	// maxUnlisted is the most outboxes of servers that are not on the list.
	maxUnlisted = 1024
	// rememberUnlisted is how long the count for a server that is not on the list matters. A server
	// that comes back later has lost its lease meanwhile, and reads everything.
	rememberUnlisted = time.Minute
)

// outboxes are the outboxes of all servers that hints were addressed to. They keep counting while a
// server is not on the list of live servers: it may not be there yet, or come back. So the number
// of the first batch tells the receiver exactly what it has missed.
type outboxes struct {
	mu       sync.Mutex // guards the fields below, and outbox.unlistedSince
	byServer map[string]*outbox
	unlisted int // outboxes with unlistedSince
	// first is the number of the first hint in new outboxes. It is above all counts that were
	// forgotten too early, so that no receiver expects it.
	first uint64
}

// get returns the outbox of a server, and makes it if there is none.
func (b *outboxes) get(server string) *outbox {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.getLocked(server)
}

func (b *outboxes) getLocked(server string) *outbox {
	if o := b.byServer[server]; o != nil {
		return o
	}
	for b.unlisted >= maxUnlisted {
		b.forgetLocked()
	}
	o := newOutbox(b.first)
	o.unlistedSince = time.Now()
	b.unlisted++
	b.byServer[server] = o
	return o
}

// list records that a server is on the list, and returns its outbox.
func (b *outboxes) list(server string) *outbox {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.getLocked(server)
	if !o.unlistedSince.IsZero() {
		o.unlistedSince = time.Time{}
		b.unlisted--
	}
	return o
}

// unlist records that a server has left the list.
func (b *outboxes) unlist(server string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o := b.byServer[server]; o != nil && o.unlistedSince.IsZero() {
		o.unlistedSince = time.Now()
		b.unlisted++
	}
}

// forgetLocked removes the outbox of the server that has been away from the list for longest.
func (b *outboxes) forgetLocked() {
	var server string
	var oldest *outbox
	for id, o := range b.byServer {
		if !o.unlistedSince.IsZero() && (oldest == nil || o.unlistedSince.Before(oldest.unlistedSince)) {
			server, oldest = id, o
		}
	}
	if time.Since(oldest.unlistedSince) < rememberUnlisted {
		b.first = max(b.first, oldest.count()+1)
	}
	delete(b.byServer, server)
	b.unlisted--
}
