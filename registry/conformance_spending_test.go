package registry

import (
	"sync"
	"testing"
	"time"
)

// owes checks what a sender owes. Time passes meanwhile, so up to a minute less will do.
func owes(t *testing.T, got SpendOutcome, bytes, channels time.Duration) {
	t.Helper()
	near := func(got, want time.Duration) bool { return got <= want && got >= max(0, want-time.Minute) }
	if got.Err != nil || !near(got.Bytes, bytes) || !near(got.Channels, channels) {
		t.Errorf("got %+v, want %v and %v", got, bytes, channels)
	}
}

func testSpend(t *testing.T, s store) {
	spend := func(list ...Spending) []SpendOutcome { return s.Spend(t.Context(), list) }
	const hour = time.Hour
	bytes := func(cost time.Duration) Spent { return Spent{cost, 10 * hour} }
	got := spend(
		Spending{User: "amy", Bytes: bytes(hour), Channels: Spent{2 * hour, 10 * hour}},
		Spending{Address: "amy", Bytes: bytes(3 * hour)}, // a user is not an address
		Spending{User: "bob"},
	)
	owes(t, got[0], hour, 2*hour)
	owes(t, got[1], 3*hour, 0)
	owes(t, got[2], 0, 0)
	owes(t, spend(Spending{User: "amy", Bytes: bytes(hour)})[0], 2*hour, 2*hour)
	owes(t, spend(Spending{User: "amy"})[0], 2*hour, 2*hour)
	owes(t, spend(Spending{Address: "amy", Channels: Spent{hour, 10 * hour}})[0], 3*hour, hour)
	owes(t, spend(Spending{User: "amy", Bytes: bytes(20 * hour)})[0], 10*hour, 2*hour)
	owes(t, spend(Spending{User: "amy", Bytes: Spent{hour, hour}})[0], 10*hour, 2*hour) // a lower Most forgives nothing
	s.ageSpent(t, "amy", 2*time.Minute)
	owes(t, spend(Spending{User: "amy"})[0], 10*hour-2*time.Minute, 2*hour-2*time.Minute)
}

func testSpendAtOnce(t *testing.T, s store) {
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			s.Spend(t.Context(), []Spending{{User: "amy", Bytes: Spent{time.Hour, 100 * time.Hour}}, {User: "amy", Bytes: Spent{time.Hour, 100 * time.Hour}}})
		})
	}
	all.Wait()
	owes(t, s.Spend(t.Context(), []Spending{{User: "amy"}})[0], 40*time.Hour, 0)
}
