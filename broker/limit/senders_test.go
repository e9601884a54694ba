package limit

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// senderOf is SenderOf for an address as text. A text that is no address stands for none.
func senderOf(user, address string, proxies []netip.Prefix) Sender {
	peer, _ := netip.ParseAddrPort(address)
	return SenderOf(user, peer, proxies)
}

func TestSenderOf(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	of := func(user, address string) Sender { return senderOf(user, address, proxies) }
	for name, c := range map[string]struct {
		a, b Sender
		same bool
	}{
		"a user":                     {of("amy", "192.0.2.1:1"), of("amy", "192.0.2.2:1"), true},
		"two users":                  {of("amy", "192.0.2.1:1"), of("bob", "192.0.2.1:1"), false},
		"an address":                 {of("", "192.0.2.1:1"), of("", "192.0.2.1:2"), true},
		"two addresses":              {of("", "192.0.2.1:1"), of("", "192.0.2.2:1"), false},
		"a mapped address":           {of("", "192.0.2.1:1"), of("", "[::ffff:192.0.2.1]:1"), true},
		"a /64":                      {of("", "[2001:db8::1]:1"), of("", "[2001:db8::2]:1"), true},
		"two /64":                    {of("", "[2001:db8::1]:1"), of("", "[2001:db8:0:1::1]:1"), false},
		"a user and an address":      {of("amy", "192.0.2.1:1"), of("", "192.0.2.1:1"), false},
		"two connections of a proxy": {of("", "10.1.2.3:1"), of("", "10.1.2.3:2"), false},
		"two loopback connections":   {of("", "127.0.0.1:1"), of("", "127.0.0.1:2"), false},
		"no address":                 {of("", ""), of("", "pipe"), true},
	} {
		if (c.a == c.b) != c.same {
			t.Errorf("%s: %v and %v", name, c.a, c.b)
		}
	}
}

// TestSenders checks that a sender has one budget, that another one has its own, and that it is
// refilled in time.
func TestSenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSenders(SenderRates{Channels: New(1, 3), Bytes: PerHour(3600)}, nil)
		amy, bob := senderOf("amy", "", nil), senderOf("bob", "", nil)
		use := func(sender Sender, bytes int, stored, created bool) (channelWait, wait time.Duration) {
			r, wait := s.Reserve(t.Context(), sender, bytes, false)
			if wait == 0 {
				s.Settle(r, stored, created)
			}
			return r.ChannelWait, wait
		}
		for range 10 { // nothing is stored, and no channel created
			if channel, wait := use(amy, 3600, false, false); channel+wait != 0 {
				t.Fatalf("a refused publish was counted: %v, %v", channel, wait)
			}
		}
		for range 3 {
			if channel, wait := use(amy, 1000, true, true); channel+wait != 0 {
				t.Fatalf("within the budget: %v, %v", channel, wait)
			}
		}
		if channel, wait := use(amy, 3600, true, false); channel != time.Second || wait != 0 {
			t.Fatalf("the fourth channel: %v, the last bytes: %v", channel, wait)
		}
		if wait := s.TakeChannel(amy); wait != time.Second {
			t.Errorf("the fourth channel by a subscribe: %v", wait)
		}
		// It stored 3000 bytes, and then 3600 with 600 left: it must wait for 3000 and one.
		if _, wait := use(amy, 1, true, false); wait != 3001*time.Second {
			t.Errorf("one more byte must wait %v", wait)
		}
		if channel, wait := use(bob, 3600, true, true); channel+wait != 0 {
			t.Errorf("another sender: %v, %v", channel, wait)
		}
		<-time.After(3001 * time.Second)
		if channel, wait := use(amy, 1, true, true); channel+wait != 0 {
			t.Errorf("after that time: %v, %v", channel, wait)
		}
	})
}

// TestSendersExpire checks that senders are removed when their buckets are full, and not earlier.
func TestSendersExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const senders = 20_000
		s := NewSenders(SenderRates{Bytes: PerHour(3600)}, nil)
		for i := range senders {
			s.Reserve(t.Context(), senderOf(fmt.Sprint(i), "", nil), 100, false)
		}
		round := func() int {
			for range senderShards {
				s.Expire()
			}
			return s.Len()
		}
		<-time.After(99 * time.Second)
		if n := round(); n != senders {
			t.Errorf("%d senders are left although no bucket is full", n)
		}
		<-time.After(time.Second)
		if n := round(); n != 0 {
			t.Errorf("%d senders are left although all buckets are full", n)
		}
	})
}

// TestSendersConcurrently checks that publishes at once get no more than the budget.
func TestSendersConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, amy := NewSenders(SenderRates{Channels: New(1, 10), Bytes: PerHour(100)}, nil), senderOf("amy", "", nil)
		var mu sync.Mutex
		var all sync.WaitGroup
		channels, publishes := 0, 0
		for range 200 {
			all.Go(func() {
				r, wait := s.Reserve(t.Context(), amy, 1, false)
				mu.Lock()
				defer mu.Unlock()
				if wait == 0 {
					publishes++
					if r.ChannelWait == 0 {
						channels++
					}
				}
			})
		}
		all.Wait()
		if channels != 10 || publishes != 100 {
			t.Errorf("%d channels, %d publishes", channels, publishes)
		}
	})
}

func TestNoSenders(t *testing.T) {
	s := NewSenders(SenderRates{}, nil)
	r, wait := s.Reserve(t.Context(), Sender{}, 1<<40, false)
	s.Settle(r, true, true)
	s.Expire()
	if s != nil || wait+r.ChannelWait+s.TakeChannel(Sender{}) != 0 || s.Len() != 0 {
		t.Error("senders without rates are limited")
	}
}

// TestSendersAllocs checks that a publish of a known sender allocates nothing.
func TestSendersAllocs(t *testing.T) {
	s := NewSenders(SenderRates{Channels: New(1, 10), Bytes: PerHour(64 << 20)}, nil)
	for _, sender := range []Sender{senderOf("amy", "", nil), senderOf("", "192.0.2.1:1", nil)} {
		if n := testing.AllocsPerRun(100, func() {
			r, _ := s.Reserve(t.Context(), sender, 100, false)
			s.Settle(r, true, false)
		}); n > 0 {
			t.Errorf("%v: %v allocations", sender, n)
		}
	}
}

func BenchmarkSenders(b *testing.B) {
	s, amy := NewSenders(SenderRates{Channels: New(1, 10), Bytes: PerHour(64 << 20)}, nil), senderOf("amy", "", nil)
	for b.Loop() {
		r, _ := s.Reserve(b.Context(), amy, 1, false)
		s.Settle(r, true, false)
	}
}
