package limit

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// maxIdle is how many addresses without a connection keep their token bucket. Above it the longest
// idle addresses are removed. More would not help: no limit by address stops a client with so many
// networks.
const maxIdle = 1 << 16

// connectionsRetryDelay is the retry delay for an address at its connection limit.
const connectionsRetryDelay = 5 * time.Second

// AddressOptions configures Addresses.
type AddressOptions struct {
	Connections int // the most connections of an address at once; 0 means no limit
	Rate        int // the most new connections of an address per second; 0 means no limit
	// Proxies are the networks of trusted proxies. Their connections are not limited, and their
	// X-Forwarded-For names the client.
	Proxies []netip.Prefix
	// Refused is called for each refused connection with AddressConnections or AddressRate. Nil
	// means no call.
	Refused func(limit string)
}

// The limits that Refused receives.
const (
	AddressConnections = "address_connections"
	AddressRate        = "address_rate"
)

// Refusal says why an address may not connect now, and when to retry.
type Refusal struct {
	Detail string
	Wait   time.Duration
}

// Seconds returns Wait as the value of Retry-After.
func (r *Refusal) Seconds() int { return Seconds(r.Wait) }

// Milliseconds returns Wait in milliseconds, and at least a second.
func (r *Refusal) Milliseconds() int64 { return max(1000, r.Wait.Milliseconds()) }

// Seconds returns d in seconds, rounded up, and at least 1.
func Seconds(d time.Duration) int { return int(max(1, (d+time.Second-1)/time.Second)) }

// Addresses counts connections by IPv4 address and by IPv6 /64, since one site gets a /64 or more
// (RFC 6177). It takes some 100 bytes for each address with connections, and nothing for each
// connection. A nil Addresses has no limits.
type Addresses struct {
	opts  AddressOptions
	rate  Rate
	epoch time.Time

	mu        sync.Mutex // guards the fields below
	slots     map[netip.Addr]Slot
	entries   []entry // by Slot; entries[0] is the head of the ring of idle entries, oldest first
	firstFree Slot    // the list of free entries, linked by next; 0 is its end
	idle      int
}

// Slot is the index of an address in Addresses; 0 means that the connection is not counted.
type Slot uint32

type entry struct {
	addr       netip.Addr
	bucket     Bucket
	conns      int32
	next, prev Slot // in the ring, when conns is 0
}

// NewAddresses returns nil if o sets no limit.
func NewAddresses(o AddressOptions) *Addresses {
	if o.Connections <= 0 && o.Rate <= 0 {
		return nil
	}
	if o.Refused == nil {
		o.Refused = func(string) {}
	}
	a := &Addresses{opts: o, rate: PerSecond(o.Rate), epoch: time.Now()}
	a.resetLocked()
	return a
}

func (a *Addresses) resetLocked() {
	a.slots, a.entries, a.firstFree = make(map[netip.Addr]Slot), make([]entry, 1), 0
}

// Enter counts a connection from addr until Leave, or refuses it. It does not count connections of
// proxies and connections without an address.
func (a *Addresses) Enter(addr netip.Addr) (Slot, *Refusal) {
	if a == nil || !addr.IsValid() || a.isProxy(addr) {
		return 0, nil
	}
	slot, limit, refusal := a.enter(Network(addr))
	if refusal != nil {
		a.opts.Refused(limit)
	}
	return slot, refusal
}

func (a *Addresses) enter(addr netip.Addr) (_ Slot, limit string, _ *Refusal) {
	now := time.Since(a.epoch)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expireLocked(now)
	slot, known := a.slots[addr]
	if !known {
		slot = a.addLocked(addr)
	}
	e := &a.entries[slot]
	if a.opts.Connections > 0 && int(e.conns) >= a.opts.Connections {
		return 0, AddressConnections, &Refusal{"too many connections from this address", connectionsRetryDelay}
	}
	if wait := e.bucket.Take(a.rate, 1, now); wait > 0 {
		return 0, AddressRate, &Refusal{"too many new connections from this address", wait}
	}
	if e.conns == 0 {
		a.unlinkLocked(slot)
	}
	e.conns++
	return slot, "", nil
}

// Leave ends a connection that Enter counted.
func (a *Addresses) Leave(slot Slot) {
	if a == nil || slot == 0 {
		return
	}
	now := time.Since(a.epoch)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.entries[slot].conns--; a.entries[slot].conns == 0 {
		a.linkLocked(slot)
	}
	a.expireLocked(now)
}

// expireLocked removes idle entries whose bucket is full, since a new entry would be the same, and
// the oldest ones above maxIdle. Two per call are enough: each call of Enter or Leave makes at most
// one entry idle.
func (a *Addresses) expireLocked(now time.Duration) {
	for range 2 {
		oldest := a.entries[0].next
		if oldest == 0 || !a.entries[oldest].bucket.Full(now) && a.idle < maxIdle {
			break
		}
		a.unlinkLocked(oldest)
		delete(a.slots, a.entries[oldest].addr)
		a.entries[oldest] = entry{next: a.firstFree}
		a.firstFree = oldest
	}
	if len(a.slots) == 0 && len(a.entries) > 1024 { // release the memory after a burst
		a.resetLocked()
	}
}

func (a *Addresses) addLocked(addr netip.Addr) Slot {
	slot := a.firstFree
	if slot != 0 {
		a.firstFree = a.entries[slot].next
	} else {
		slot = Slot(len(a.entries))
		a.entries = append(a.entries, entry{})
	}
	a.entries[slot] = entry{addr: addr}
	a.slots[addr] = slot
	a.linkLocked(slot)
	return slot
}

func (a *Addresses) linkLocked(slot Slot) {
	last := a.entries[0].prev
	a.entries[slot].prev, a.entries[slot].next = last, 0
	a.entries[last].next, a.entries[0].prev = slot, slot
	a.idle++
}

func (a *Addresses) unlinkLocked(slot Slot) {
	prev, next := a.entries[slot].prev, a.entries[slot].next
	a.entries[prev].next, a.entries[next].prev = next, prev
	a.idle--
}

func (a *Addresses) isProxy(addr netip.Addr) bool { return Contains(a.opts.Proxies, addr) }

// Contains reports whether one of the networks contains addr.
func Contains(networks []netip.Prefix, addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// Network returns addr if it is an IPv4 address, or the /64 of an IPv6 address. All addresses of
// one Network share a limit.
func Network(addr netip.Addr) netip.Addr {
	if addr = addr.Unmap().WithZone(""); addr.Is4() {
		return addr
	}
	p, _ := addr.Prefix(64) // never fails for IPv6
	return p.Addr()
}
