package limit

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// maxIdle is how many addresses without a connection are remembered for what they used of their rate. Above it the
// oldest are forgotten: who has more networks than that is not held by a limit of addresses.
const maxIdle = 1 << 16

// fullWait is how long who has all its connections is asked to wait.
const fullWait = 5 * time.Second

// AddressOptions configures Addresses.
type AddressOptions struct {
	Connections int // at once, from one address; 0 for any number
	Rate        int // new ones a second; 0 for any number
	// Proxies are the networks of whoever connects for others: they are not limited, and are believed whom they connect for.
	Proxies []netip.Prefix
	// Refused is told which of the limits refused a connection. Nil means nobody cares.
	Refused func(what string)
}

// The limits, as Refused is told of them.
const (
	AddressConnections = "address_connections"
	AddressRate        = "address_rate"
)

// Refusal is why an address may not connect now.
type Refusal struct {
	Detail string
	Wait   time.Duration
}

// Seconds is Wait as Retry-After has it.
func (r *Refusal) Seconds() int { return Seconds(r.Wait) }

// Seconds rounds up, to one at least.
func Seconds(d time.Duration) int { return int(max(1, (d+time.Second-1)/time.Second)) }

// Addresses counts connections by address, and by /64 for IPv6, since that is what one subscriber gets (RFC 6177). Nil
// limits nothing. For a connection it takes no memory, for an address with connections some 100 bytes.
type Addresses struct {
	opts  AddressOptions
	rate  Rate
	epoch time.Time

	mu      sync.Mutex // guards the fields below
	places  map[netip.Addr]Slot
	entries []entry // by Place; the first one is of none, and heads the ring of the idle, the oldest first
	unused  Slot    // the first of a list, linked by next
	idle    int
}

// Slot is that of a connection in Addresses; 0 for one that is not counted.
type Slot uint32

type entry struct {
	addr       netip.Addr
	bucket     Bucket
	conns      int32
	next, prev Slot // in the ring, when conns is 0
}

// NewAddresses returns nil where nothing is limited.
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
	a.places, a.entries, a.unused = make(map[netip.Addr]Slot), make([]entry, 1), 0
}

// Enter counts a connection from addr, until Leave. Those of proxies, and without an address, are not counted.
func (a *Addresses) Enter(addr netip.Addr) (Slot, *Refusal) {
	if a == nil || !addr.IsValid() || a.proxy(addr) {
		return 0, nil
	}
	p, what, refusal := a.enter(network(addr))
	if refusal != nil {
		a.opts.Refused(what)
	}
	return p, refusal
}

func (a *Addresses) enter(addr netip.Addr) (_ Slot, what string, _ *Refusal) {
	now := time.Since(a.epoch)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expireLocked(now)
	p, known := a.places[addr]
	if !known {
		p = a.addLocked(addr)
	}
	e := &a.entries[p]
	if a.opts.Connections > 0 && int(e.conns) >= a.opts.Connections {
		return 0, AddressConnections, &Refusal{"too many connections from this address", fullWait}
	}
	if wait := e.bucket.Take(a.rate, 1, now); wait > 0 {
		return 0, AddressRate, &Refusal{"too many new connections from this address", wait}
	}
	if e.conns == 0 {
		a.unlinkLocked(p)
	}
	e.conns++
	return p, "", nil
}

// Leave is the end of Enter.
func (a *Addresses) Leave(p Slot) {
	if a == nil || p == 0 {
		return
	}
	now := time.Since(a.epoch)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.entries[p].conns--; a.entries[p].conns == 0 {
		a.linkLocked(p)
	}
	a.expireLocked(now)
}

// expireLocked forgets who is as good as new. Two at a time are enough, since each call leaves at most one more.
func (a *Addresses) expireLocked(now time.Duration) {
	for range 2 {
		oldest := a.entries[0].next
		if oldest == 0 || !a.entries[oldest].bucket.Full(now) && a.idle < maxIdle {
			break
		}
		a.unlinkLocked(oldest)
		delete(a.places, a.entries[oldest].addr)
		a.entries[oldest] = entry{next: a.unused}
		a.unused = oldest
	}
	if len(a.places) == 0 && len(a.entries) > 1024 { // a crowd is gone, with its memory
		a.resetLocked()
	}
}

func (a *Addresses) addLocked(addr netip.Addr) Slot {
	p := a.unused
	if p != 0 {
		a.unused = a.entries[p].next
	} else {
		p = Slot(len(a.entries))
		a.entries = append(a.entries, entry{})
	}
	a.entries[p] = entry{addr: addr}
	a.places[addr] = p
	a.linkLocked(p)
	return p
}

func (a *Addresses) linkLocked(p Slot) {
	last := a.entries[0].prev
	a.entries[p].prev, a.entries[p].next = last, 0
	a.entries[last].next, a.entries[0].prev = p, p
	a.idle++
}

func (a *Addresses) unlinkLocked(p Slot) {
	prev, next := a.entries[p].prev, a.entries[p].next
	a.entries[prev].next, a.entries[next].prev = next, prev
	a.idle--
}

func (a *Addresses) proxy(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(a.opts.Proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// Network is the address, or of IPv6 the /64, that counts as one address.
func Network(addr netip.Addr) netip.Addr { return network(addr) }

// network is what is counted as one address.
func network(addr netip.Addr) netip.Addr {
	if addr = addr.Unmap().WithZone(""); addr.Is4() {
		return addr
	}
	p, _ := addr.Prefix(64) // an IPv6 address has one
	return p.Addr()
}
