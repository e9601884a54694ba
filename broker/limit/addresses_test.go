package limit

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

func networks(t *testing.T, texts ...string) []netip.Prefix {
	t.Helper()
	list, err := Networks(texts)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestSameAddress(t *testing.T) {
	for _, c := range []struct {
		one, other string
		same       bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"2001:db8:0:1::1", "2001:db8:0:1:ffff::9", true},
		{"2001:db8:0:1::1", "2001:db8:0:2::1", false},
		{"fe80::1%eth0", "fe80::2%eth1", true},
		{"::1", "127.0.0.1", false},
	} {
		a := NewAddresses(AddressOptions{Connections: 1})
		if _, refusal := a.Enter(netip.MustParseAddr(c.one)); refusal != nil {
			t.Fatal(refusal)
		}
		if _, refusal := a.Enter(netip.MustParseAddr(c.other)); (refusal != nil) != c.same {
			t.Errorf("%s and %s: %+v", c.one, c.other, refusal)
		}
	}
}

func TestConnectionsAndRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := map[string]int{}
		a := NewAddresses(AddressOptions{
			Connections: 5, Rate: 1, Proxies: networks(t, "10.0.0.0/8", "2001:db8::/32"),
			Refused: func(limit string) { refused[limit]++ },
		})
		one := netip.MustParseAddr("192.0.2.1")
		enter := func(limit string) Slot {
			t.Helper()
			before := refused[limit]
			slot, refusal := a.Enter(one)
			if (refusal != nil) != (limit != "") || limit != "" && (refused[limit] != before+1 || refusal.Wait <= 0 || refusal.Detail == "") {
				t.Fatalf("got %v %+v, refused %v, want %q", slot, refusal, refused, limit)
			}
			return slot
		}
		var slots []Slot
		for range 4 {
			slots = append(slots, enter(""))
		}
		enter(AddressRate)
		for _, exempt := range []string{"10.1.2.3", "::ffff:10.1.2.3", "2001:db8::1"} {
			for range 20 {
				if slot, refusal := a.Enter(netip.MustParseAddr(exempt)); slot != 0 || refusal != nil {
					t.Fatal(exempt, slot, refusal)
				}
			}
		}
		<-time.After(time.Second)
		slots = append(slots, enter(""))
		<-time.After(time.Second)
		enter(AddressConnections) // takes no token of the rate
		a.Leave(slots[0])
		slots[0] = enter("")
		enter(AddressConnections)
		for _, slot := range slots {
			a.Leave(slot)
		}
		if enter(AddressRate); len(a.slots) != 1 || a.idle != 1 {
			t.Errorf("an address with an empty bucket was removed: %d slots, %d idle", len(a.slots), a.idle)
		}
		<-time.After(4 * time.Second)
		for range 4 {
			a.Leave(enter(""))
		}
		enter(AddressRate)
		<-time.After(4 * time.Second)
		slot, _ := a.Enter(netip.MustParseAddr("192.0.2.2"))
		if a.Leave(slot); len(a.slots) != 1 || a.idle != 1 {
			t.Errorf("an address with a full bucket was kept: %d slots, %d idle", len(a.slots), a.idle)
		}
	})
}

// TestBounded connects and disconnects more addresses than maxIdle, twice.
func TestBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAddresses(AddressOptions{Rate: 1})
		var raw [16]byte
		raw[0] = 0x20
		for range 2 {
			for i := range uint64(3 * maxIdle) {
				binary.BigEndian.PutUint64(raw[:8], 1<<61+i)
				slot, refusal := a.Enter(netip.AddrFrom16(raw))
				if refusal != nil {
					t.Fatal(refusal)
				}
				a.Leave(slot)
			}
			if len(a.slots) > maxIdle+1 || a.idle != len(a.slots) || len(a.entries) > maxIdle+3 {
				t.Fatalf("%d slots, %d idle, %d entries", len(a.slots), a.idle, len(a.entries))
			}
		}
		// A connection keeps its slot while others connect and disconnect. The memory is released after
		// the burst.
		slot, _ := a.Enter(netip.MustParseAddr("192.0.2.1"))
		<-time.After(time.Minute)
		other := netip.MustParseAddr("192.0.2.2")
		for len(a.slots) > 2 {
			q, refusal := a.Enter(other)
			if refusal != nil {
				<-time.After(time.Second)
			}
			a.Leave(q)
		}
		if a.entries[slot].conns != 1 || a.entries[slot].addr != netip.MustParseAddr("192.0.2.1") {
			t.Errorf("the connection's entry is %+v", a.entries[slot])
		}
		a.Leave(slot)
		<-time.After(time.Minute)
		q, _ := a.Enter(other)
		if len(a.entries) > 2 {
			t.Errorf("%d entries are kept", len(a.entries))
		}
		a.Leave(q)
	})
}

func TestNoLimits(t *testing.T) {
	a := NewAddresses(AddressOptions{Proxies: networks(t, "10.0.0.0/8")})
	slot, refusal := a.Enter(netip.MustParseAddr("192.0.2.1"))
	if a.Leave(slot); a != nil || slot != 0 || refusal != nil {
		t.Error("no limits are set, but an address is limited")
	}
	b := NewAddresses(AddressOptions{Rate: 1})
	for range 10 {
		if slot, refusal := b.Enter(netip.Addr{}); slot != 0 || refusal != nil {
			t.Error("a connection without an address is limited")
		}
	}
}

func TestForwarded(t *testing.T) {
	proxies := networks(t, "10.0.0.0/8", "2001:db8::1")
	for _, c := range []struct {
		peer   string
		values []string
		want   string // "" for the zero Addr
	}{
		{"10.0.0.1", []string{"192.0.2.1"}, "192.0.2.1"},
		{"::ffff:10.0.0.1", []string{"192.0.2.1"}, "192.0.2.1"},
		{"2001:db8::1", []string{" 192.0.2.1 "}, "192.0.2.1"},
		{"192.0.2.9", []string{"192.0.2.1"}, ""},   // not a proxy
		{"2001:db8::2", []string{"192.0.2.1"}, ""}, // not a proxy
		{"10.0.0.1", nil, ""},
		{"10.0.0.1", []string{""}, ""},
		{"10.0.0.1", []string{"203.0.113.7, 192.0.2.1"}, "192.0.2.1"},            // the client may have invented the first
		{"10.0.0.1", []string{"192.0.2.1, 10.0.0.2, 10.0.0.3"}, "192.0.2.1"},     // three proxies
		{"10.0.0.1", []string{"203.0.113.7", "192.0.2.1,10.0.0.2"}, "192.0.2.1"}, // over two lines
		{"10.0.0.1", []string{"192.0.2.1", "10.0.0.2"}, "192.0.2.1"},
		{"10.0.0.1", []string{"10.0.0.2"}, ""},
		{"10.0.0.1", []string{"192.0.2.1, unknown"}, ""},
		{"10.0.0.1", []string{"192.0.2.1:4711"}, "192.0.2.1"},
		{"10.0.0.1", []string{"[2001:db8::5]:4711"}, "2001:db8::5"},
		{"10.0.0.1", []string{"2001:db8::5"}, "2001:db8::5"},
		{"10.0.0.1", []string{"[2001:db8::5]"}, "2001:db8::5"},
		{"10.0.0.1", []string{"192.0.2.1,"}, ""},
	} {
		got := Forwarded(proxies, netip.MustParseAddr(c.peer), c.values)
		if got.IsValid() != (c.want != "") || got.IsValid() && got.String() != c.want {
			t.Errorf("from %s with %q: %v, want %s", c.peer, c.values, got, c.want)
		}
	}
}

func TestNetworks(t *testing.T) {
	got := networks(t, "10.1.2.3/8", "192.0.2.1", "::1", "::ffff:192.0.2.2")
	for i, want := range []string{"10.0.0.0/8", "192.0.2.1/32", "::1/128", "192.0.2.2/32"} {
		if got[i].String() != want {
			t.Errorf("got %v, want %s", got[i], want)
		}
	}
	for _, bad := range []string{"", "lb.example.com", "10.0.0.0/33", "10.0.0.1:80", "fe80::1%eth0", "::ffff:10.0.0.0/104"} {
		if list, err := Networks([]string{bad}); err == nil {
			t.Errorf("%q is read as %v", bad, list)
		}
	}
}
