package limit

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/registry"
)

// testLedger is a ledger in memory that counts its calls, and that may fail.
type testLedger struct {
	*registry.Memory
	calls, senders int
	fails          bool
}

func (l *testLedger) Spend(ctx context.Context, list []registry.Spending) []registry.SpendOutcome {
	l.calls, l.senders = l.calls+1, l.senders+len(list)
	if l.fails {
		outcomes := make([]registry.SpendOutcome, len(list))
		for i := range outcomes {
			outcomes[i].Err = errors.New("no answer")
		}
		return outcomes
	}
	return l.Memory.Spend(ctx, list)
}

// testBurst is the burst of bytes in the tests of the ledger, and testStep is the step.
const (
	testBurst = 6400
	testStep  = testBurst / byteSteps
)

// servers returns the Senders of n servers with one ledger.
func servers(n int) ([]*Senders, *testLedger) {
	ledger := &testLedger{Memory: registry.NewMemory(registry.Options{})}
	list := make([]*Senders, n)
	for i := range list {
		list[i] = newServer(ledger)
	}
	return list, ledger
}

func newServer(ledger Ledger) *Senders {
	return NewSenders(SenderRates{Channels: New(1, 16), Bytes: PerHour(testBurst)}, ledger)
}

// store publishes until the sender is refused on each server, in turns. It returns the bytes that
// it stored.
func store(t *testing.T, sender Sender, each int, servers ...*Senders) (bytes int) {
	t.Helper()
	for refused := 0; refused < len(servers); {
		refused = 0
		for _, s := range servers {
			r, wait := s.Reserve(t.Context(), sender, each, true)
			if wait > 0 {
				refused++
				continue
			}
			s.Settle(r, true, false)
			bytes += each
		}
	}
	return bytes
}

// TestServersShareTheBytes checks that a sender may store one budget on all servers, and a step
// more on each, also after a restart, and that each server refills at the rate of all.
func TestServersShareTheBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, ledger := servers(3)
		amy, network := senderOf("amy", "", nil), senderOf("", "192.0.2.1:7", nil)
		for name, sender := range map[string]Sender{"a user": amy, "an address": network} {
			if n := store(t, sender, 10, all...); n < testBurst || n > testBurst+3*testStep {
				t.Errorf("%s stored %d bytes", name, n)
			}
		}
		if ledger.calls > 2*(byteSteps+3) {
			t.Errorf("%d calls", ledger.calls)
		}
		if n := store(t, amy, 10, newServer(ledger)); n > testStep {
			t.Errorf("%d bytes on a server that has begun", n)
		}
		if n := store(t, senderOf("bob", "", nil), 10, all[0]); n != testBurst {
			t.Errorf("another user stored %d bytes", n)
		}
		before := store(t, amy, 10, all...)
		for range 36 { // an hour refills the burst once, and not once on each server
			<-time.After(100 * time.Second)
			before += store(t, amy, 10, all...)
		}
		if before < testBurst*9/10 || before > testBurst+4*testStep {
			t.Errorf("%d bytes in an hour", before)
		}
	})
}

// TestConnectionsOfProxiesAreNotReported checks that a sender with one connection costs no calls.
func TestConnectionsOfProxiesAreNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, ledger := servers(1)
		proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
		for _, address := range []string{"10.0.0.1:1", "127.0.0.1:1", "pipe"} {
			if n := store(t, senderOf("", address, proxies), 10, all[0]); n != testBurst || ledger.calls != 0 {
				t.Errorf("%s: %d bytes and %d calls", address, n, ledger.calls)
			}
		}
	})
}

// TestServersShareTheChannels checks that channels that a sender has created on one server count on
// the others, also if a subscribe has paid for them there.
func TestServersShareTheChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, ledger := servers(3)
		amy := senderOf("amy", "", nil)
		created := 0
		publish := func(s *Senders, paid bool) {
			r, wait := s.Reserve(t.Context(), amy, 1, paid)
			if wait > 0 {
				t.Fatalf("wait %v", wait)
			}
			if r.ChannelWait == 0 {
				created++
			}
			s.Settle(r, true, r.ChannelWait == 0)
		}
		for _, s := range all {
			for range 16 {
				if wait := s.TakeChannel(amy); wait > 0 {
					t.Fatalf("a subscribe creates nothing: wait %v", wait)
				}
			}
		}
		for _, paid := range []bool{true, false} {
			for range 16 {
				for _, s := range all {
					publish(s, paid)
				}
			}
		}
		if created < 16 || created > 16+3*4 {
			t.Errorf("%d channels", created)
		}
		reports := ledger.calls
		for range 100 { // channels that exist cost nothing
			r, _ := all[0].Reserve(t.Context(), senderOf("bob", "", nil), 1, false)
			all[0].Settle(r, true, false)
		}
		if ledger.calls-reports > 1 {
			t.Errorf("%d calls", ledger.calls-reports)
		}
	})
}

// TestLedgerFails checks that a server goes on alone while the ledger does not answer, asks again
// after a pause, and then reports what was stored meanwhile.
func TestLedgerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, ledger := servers(2)
		amy := senderOf("amy", "", nil)
		ledger.fails = true
		if n := store(t, amy, 10, all[0]); n != testBurst || ledger.calls != 1 {
			t.Errorf("%d bytes and %d calls without an answer", n, ledger.calls)
		}
		ledger.fails = false
		<-time.After(2 * time.Second)
		store(t, amy, 10, all[0])
		owed := ledger.Memory.Spend(t.Context(), []registry.Spending{{User: "amy"}})[0].Bytes
		if owed < time.Hour-time.Second || owed > time.Hour+10*time.Second {
			t.Errorf("%v were reported", owed)
		}
		if n := store(t, amy, 10, all[1]); n > 2*testStep {
			t.Errorf("%d bytes on the other server", n)
		}
	})
}

// TestRestsAreReported checks that a sender that never stores a step is reported when its bucket is
// full again: not for each publish, and with the right sum.
func TestRestsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := &testLedger{Memory: registry.NewMemory(registry.Options{})}
		s := NewSenders(SenderRates{Bytes: PerHour(64 * 1600)}, ledger)
		const quantum, rounds = 100, 2000
		for range rounds { // 10 bytes each, a tenth of a quantum
			r, wait := s.Reserve(t.Context(), senderOf("amy", "", nil), 10, true)
			if wait > 0 {
				t.Fatalf("wait %v", wait)
			}
			s.Settle(r, true, false)
			<-time.After(time.Second)
			for range senderShards {
				if report := s.Expire(); report != nil {
					report(t.Context())
				}
			}
		}
		if n := ledger.senders; n < rounds/10-80 || n > rounds/10+80 { // six standard deviations
			t.Errorf("%d reports of %d bytes for %d bytes", n, quantum, 10*rounds)
		}
		for _, c := range []struct{ n, quantum, want int }{{0, 0, 0}, {3, 0, 3}, {0, 9, 0}, {9, 9, 9}, {70, 9, 70}} {
			if got := roundToQuantum(c.n, c.quantum); got != c.want {
				t.Errorf("%d with a quantum of %d: %d", c.n, c.quantum, got)
			}
		}
	})
}

// TestSmallSendersCostNothing checks that a sender below a step causes no call while it is active.
func TestSmallSendersCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, ledger := servers(1)
		for range testStep / 10 {
			r, _ := all[0].Reserve(t.Context(), senderOf("amy", "", nil), 10, false)
			all[0].Settle(r, true, false)
		}
		for range 100 { // the store refuses these publishes
			r, _ := all[0].Reserve(t.Context(), senderOf("bob", "", nil), 10, false)
			all[0].Settle(r, false, false)
		}
		if ledger.calls != 0 {
			t.Errorf("%d calls", ledger.calls)
		}
	})
}
