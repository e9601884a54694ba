package limit

import (
	"context"
	"hash/maphash"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"switchboard/registry"
)

// senderShards is the number of locks of Senders.
const senderShards = 32

// minShrink is how many entries a shard must have had before Expire shrinks its map.
const minShrink = 256

// Sender is the user of a client, or the network of a client without a user. All connections of one
// Sender share its rates of what they store and make the store read.
type Sender struct {
	user    string
	address netip.AddrPort // the port is 0, unless the address is that of a proxy
}

// SenderOf returns the Sender of a client of that user, or of one without a user whose connection
// is from that peer. A proxy or a loopback address may have many clients: each of their connections
// is a Sender of its own.
func SenderOf(user string, peer netip.AddrPort, proxies []netip.Prefix) Sender {
	if user != "" {
		return Sender{user: user}
	}
	switch addr := peer.Addr(); {
	case !peer.IsValid():
		return Sender{}
	case addr.Unmap().IsLoopback(), Contains(proxies, addr):
		return Sender{address: peer}
	default:
		return Sender{address: netip.AddrPortFrom(Network(addr), 0)}
	}
}

// SenderRates are the rates of one Sender.
type SenderRates struct {
	Channels Rate // of channels that it creates
	Bytes    Rate // of bytes that it stores
	Read     Rate // of bytes that the store sends for its messages
}

// Senders has the buckets of the senders that have stored or read something lately. It takes some
// 100 bytes for each of them. It is safe for concurrent use, and holds no lock for longer than a
// few map operations, except in Expire. A nil Senders has no limits.
type Senders struct {
	rates  SenderRates
	ledger Ledger  // nil if this is the only server
	step   amounts // what a sender may use here before it is reported
	epoch  time.Time
	seed   maphash.Seed
	shards [senderShards]senderShard
	next   atomic.Uint32 // the shard of the next Expire

	pausedUntil atomic.Int64 // when the next report may be sent, in ns since epoch
	readableAt  atomic.Int64 // from then on no sender must wait for a read, in ns since epoch; 0 for now
}

type senderShard struct {
	mu      sync.Mutex // guards the fields below
	entries map[Sender]senderUse
	most    int // entries since the map was made
}

// senderUse is what a sender has used of its rates.
type senderUse struct {
	channels, bytes, read Bucket

	unreported amounts // stored here since the last report to the ledger
}

// NewSenders returns nil if there are no rates. The ledger adds up what senders store on all
// servers, nil for none.
func NewSenders(r SenderRates, ledger Ledger) *Senders {
	if r.Channels.None() && r.Bytes.None() && r.Read.None() {
		return nil
	}
	s := &Senders{rates: r, ledger: ledger, step: r.steps(), epoch: time.Now(), seed: maphash.MakeSeed()}
	for i := range s.shards {
		s.shards[i].entries = map[Sender]senderUse{}
	}
	return s
}

// TakeChannel takes a channel, or returns how long it is until the sender may create one.
func (s *Senders) TakeChannel(sender Sender) (wait time.Duration) {
	if s == nil {
		return 0
	}
	sh, now := s.shard(sender), time.Since(s.epoch)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	use := sh.entries[sender]
	if wait = use.channels.Take(s.rates.Channels, 1, now); wait == 0 {
		sh.setLocked(sender, use)
	}
	return wait
}

// Reservation is what a publish may use, from Reserve until Settle.
type Reservation struct {
	sender  Sender
	bytes   int
	channel bool // a channel was taken
	// ChannelWait is how long it is until the sender may create a channel. If it is 0, this publish
	// may create one.
	ChannelWait time.Duration
}

// Reserve takes the bytes of a publish, and a channel if there is one: only the store knows whether
// the publish creates a channel. With paid, the sender has taken the channel by a subscribe. Settle
// must follow, unless wait is above 0: then the sender has stored too much, and may publish after
// wait. Reserve calls the ledger if the sender has stored a step since the last call.
func (s *Senders) Reserve(ctx context.Context, sender Sender, bytes int, paid bool) (r Reservation, wait time.Duration) {
	if s == nil {
		return Reservation{}, 0
	}
	sh, now := s.shard(sender), time.Since(s.epoch)
	r = Reservation{sender: sender, bytes: bytes}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	use := sh.entries[sender]
	if s.reportsNow(sender, use, bytes, now) {
		s.reportLocked(ctx, sh, sender)
		use, now = sh.entries[sender], time.Since(s.epoch)
	}
	if wait = use.bytes.Take(s.rates.Bytes, bytes, now); wait > 0 {
		return Reservation{}, wait
	}
	if paid {
		r.ChannelWait = use.channels.overdrawn(s.rates.Channels, now)
	} else {
		r.ChannelWait = use.channels.Take(s.rates.Channels, 1, now)
		r.channel = r.ChannelWait == 0
	}
	use.unreported.bytes += bytes
	sh.setLocked(sender, use)
	return r, 0
}

// Settle gives back what a publish has not used. stored says that the store has, or may have, the
// bytes, and created that the publish has created a channel.
func (s *Senders) Settle(r Reservation, stored, created bool) {
	if s == nil || stored && created && s.ledger == nil {
		return
	}
	sh := s.shard(r.sender)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	use, known := sh.entries[r.sender]
	if !known { // all is refilled
		return
	}
	if !stored {
		use.bytes.give(s.rates.Bytes, r.bytes)
		use.unreported.bytes = max(0, use.unreported.bytes-r.bytes)
	}
	switch {
	case created:
		use.unreported.channels++
	case r.channel:
		use.channels.give(s.rates.Channels, 1)
	}
	sh.entries[r.sender] = use
}

// Expire removes the senders of one shard whose buckets are full again. It is called once a second.
// The caller runs the function that it returns, which reports to the ledger; nil for none.
func (s *Senders) Expire() (report func(context.Context)) {
	if s == nil {
		return nil
	}
	var rests []registry.Spending
	sh, now := &s.shards[s.next.Add(1)%senderShards], time.Since(s.epoch)
	if at := s.readableAt.Load(); at != 0 && at <= int64(now) {
		s.readableAt.CompareAndSwap(at, 0)
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for sender, use := range sh.entries {
		if use.channels.Full(now) && use.bytes.Full(now) && use.read.Full(now) {
			delete(sh.entries, sender)
			if rest, due := s.rest(sender, use); due {
				rests = append(rests, rest)
			}
		}
	}
	sh.shrinkLocked()
	return s.reportAll(rests)
}

// shrinkLocked makes a smaller map if most senders are gone: a map never shrinks.
func (sh *senderShard) shrinkLocked() {
	if sh.most < minShrink || len(sh.entries) > sh.most/4 {
		return
	}
	rest := make(map[Sender]senderUse, len(sh.entries))
	for sender, use := range sh.entries {
		rest[sender] = use
	}
	sh.entries, sh.most = rest, len(rest)
}

// Len returns the number of senders.
func (s *Senders) Len() (n int) {
	if s == nil {
		return 0
	}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		n += len(sh.entries)
		sh.mu.Unlock()
	}
	return n
}

func (sh *senderShard) setLocked(sender Sender, use senderUse) {
	sh.entries[sender] = use
	sh.most = max(sh.most, len(sh.entries))
}

func (s *Senders) shard(sender Sender) *senderShard {
	hash := maphash.String(s.seed, sender.user)
	if sender.user == "" {
		addr := sender.address.Addr().As16()
		hash = maphash.Bytes(s.seed, addr[:]) + uint64(sender.address.Port())
	}
	return &s.shards[hash%senderShards]
}
