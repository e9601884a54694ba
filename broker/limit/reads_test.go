package limit

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestReads checks that a sender that has read too much must wait until it is paid back, and that
// reads and what is stored have budgets of their own.
func TestReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate = 1 << 20 // bytes a second, with a burst of four seconds' worth
		l := &testLedger{}
		s := NewSenders(SenderRates{Bytes: PerHour(3600), Read: PerSecond(rate)}, l)
		amy, bob := senderOf("amy", "", nil), senderOf("bob", "", nil)
		for i, c := range []struct {
			read int
			want time.Duration // until it may read again
		}{
			{3 * rate, 0},
			{3 * rate, 2 * time.Second},
			{rate, 3 * time.Second}, // of a message that was under way
			{1000 * rate, time.Minute},
		} {
			s.TakeRead(amy, c.read)
			if got := s.ReadWait(amy).Truncate(time.Millisecond); got != c.want {
				t.Errorf("after read %d it must wait %v, want %v", i, got, c.want)
			}
		}
		if wait := s.ReadWait(bob); wait != 0 {
			t.Errorf("another sender must wait %v", wait)
		}
		if _, wait := s.Reserve(t.Context(), amy, 1, false); wait != 0 {
			t.Errorf("a publish must wait %v", wait)
		}
		for range senderShards {
			s.Expire()
		}
		if s.ReadWait(amy) == 0 {
			t.Error("a sender that owes is forgotten")
		}
		<-time.After(2 * time.Minute)
		for range senderShards {
			s.Expire()
		}
		if n, wait := s.Len(), s.ReadWait(amy); n != 0 || wait != 0 || l.calls != 0 {
			t.Errorf("later there are %d senders, it must wait %v, and there were %d reports", n, wait, l.calls)
		}
	})
}

// TestMayAllRead checks that MayAllRead answers for all senders as ReadWait does, until the last
// one has paid back.
func TestMayAllRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate = 1 << 20
		s := NewSenders(SenderRates{Read: PerSecond(rate)}, nil)
		amy, bob := senderOf("amy", "", nil), senderOf("", "192.0.2.1:7", nil)
		step := func(of Sender, read int) {
			t.Helper()
			if read > 0 {
				s.TakeRead(of, read)
			}
			s.Expire()
			if got, want := s.MayAllRead(), s.ReadWait(amy) == 0 && s.ReadWait(bob) == 0; got != want {
				t.Errorf("%v, but amy must wait %v and bob %v", got, s.ReadWait(amy), s.ReadWait(bob))
			}
		}
		for range 3 {
			step(amy, 0)
			step(amy, rate)
			step(amy, 7*rate)
			step(bob, 5*rate) // less than amy owes
			for range 100 {
				<-time.After(100 * time.Millisecond)
				step(bob, 0)
			}
			if !s.MayAllRead() {
				t.Error("all have paid back, and may not read")
			}
		}
		if none := (*Senders)(nil); !none.MayAllRead() {
			t.Error("without limits they may not read")
		}
	})
}

// TestSmallReads checks that many small reads count as much as a large one, and that single ones
// leave few senders.
func TestSmallReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSenders(SenderRates{Read: PerSecond(1 << 30)}, nil)
		const n, each = 100_000, 500
		for i := range n {
			s.TakeRead(Sender{user: string(rune(i))}, each)
		}
		if few := s.Len(); few == 0 || few > n/10 {
			t.Errorf("%d of %d senders", few, n)
		}
		amy := senderOf("amy", "", nil)
		for range n {
			s.TakeRead(amy, each)
		}
		full := time.Duration(s.shard(amy).entries[amy].read)
		if bytes := full.Seconds() * (1 << 30); bytes < n*each*9/10 || bytes > n*each*11/10 {
			t.Errorf("%.0f bytes are counted, of %d", bytes, n*each)
		}
	})
	var none *Senders
	none.TakeRead(Sender{user: "amy"}, 1<<40)
	unlimited := NewSenders(SenderRates{Bytes: PerHour(1)}, nil)
	unlimited.TakeRead(Sender{user: "amy"}, 1<<40)
	if none.ReadWait(Sender{user: "amy"}) != 0 || unlimited.ReadWait(Sender{user: "amy"}) != 0 || unlimited.Len() != 0 {
		t.Error("a sender must wait, without a limit")
	}
}
