package hold_test

import (
	"testing"
	"time"

	"switchboard/internal/wire"
	"switchboard/kit/hold"
)

// TestHoldConfirmRelease is the life of a hold: it is made, repeated, renewed, sold and released.
func TestHoldConfirmRelease(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		t, ctx := s.t, s.t.Context()
		s.put(hold.Resource{Seats: seats("A1..A10", "box")})
		first, err := s.at(0).Hold(ctx, show, hold.TakeRequest{ID: "order-1", User: "bob", Seats: seats("A2", "A1")})
		ok(t, err)
		equal(t, "hold", first.Seats, seats("A1", "A2"))
		equal(t, "time", first.Until-first.Created, (15 * time.Minute).Milliseconds())
		again, err := s.at(1).Hold(ctx, show, hold.TakeRequest{ID: "order-1", User: "bob", Seats: seats("A1", "A2")})
		ok(t, err)
		equal(t, "seats of the repeated call", again.Seats, first.Seats)
		s.want(0, 2)

		_, err = s.at(1).Hold(ctx, show, hold.TakeRequest{User: "amy", Seats: seats("A2", "A3")})
		equal(t, "taken", fails(t, err, wire.Conflict), any(map[string][]string{"taken": {"A2"}}))
		_, err = s.at(2).Hold(ctx, show, hold.TakeRequest{User: "bob", Seats: seats("A4")})
		equal(t, "holds", fails(t, err, wire.Conflict), any(map[string][]string{"holds": {"order-1"}}))
		_, err = s.at(2).Hold(ctx, show, hold.TakeRequest{ID: "order-1", User: "amy", Seats: seats("A1", "A2")})
		fails(t, err, wire.Conflict)
		_, err = s.at(2).Hold(ctx, show, hold.TakeRequest{ID: "order-1", User: "bob", Seats: seats("A4")})
		fails(t, err, wire.Conflict)
		s.want(0, 2) // all or nothing

		_, err = s.at(2).Renew(ctx, hold.Change{Resource: show, ID: "order-1"})
		ok(t, err)
		for i := range 2 {
			sold, err := s.at(i).Confirm(ctx, hold.Change{Resource: show, ID: "order-1"})
			ok(t, err)
			equal(t, "state", sold.State, hold.Sold)
		}
		s.want(2, 0)
		_, err = s.at(1).Hold(ctx, show, hold.TakeRequest{User: "bob", Seats: seats("A4")})
		ok(t, err)
		for i := range 2 {
			released, err := s.at(i).Release(ctx, hold.Change{Resource: show, ID: "order-1"})
			ok(t, err)
			equal(t, "state", released.State, hold.Released)
			s.want(0, 1)
		}
		_, err = s.at(0).Confirm(ctx, hold.Change{Resource: show, ID: "order-1"})
		equal(t, "state", fails(t, err, wire.Expired).(*hold.Hold).State, hold.Released)
		list, err := s.at(2).Of(ctx, show, "bob")
		ok(t, err)
		equal(t, "holds of bob", len(list), 2)
	})
}

// TestExpiry checks that the places are free at the moment of the end, without a cleaner, and that
// a late confirm learns it.
func TestExpiry(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		t, ctx := s.t, s.t.Context()
		s.put(hold.Resource{Capacity: 3, HoldMS: s.short.Milliseconds()})
		bob, err := s.at(0).Hold(ctx, show, hold.TakeRequest{ID: "b", User: "bob", Count: 3})
		ok(t, err)
		s.pass(bob)
		s.want(0, 0)

		// The user holds again between the end and any cleaner: one hold is taken, and none is given
		// back twice.
		second, err := s.at(1).Hold(ctx, show, hold.TakeRequest{ID: "b2", User: "bob", Count: 2, HoldMS: time.Minute.Milliseconds()})
		ok(t, err)
		s.want(0, 2)

		for i := range 2 {
			_, err = s.at(i).Confirm(ctx, hold.Change{Resource: show, ID: "b"})
			facts := fails(t, err, wire.Expired).(*hold.Hold)
			if facts.State != hold.Expired || facts.User != "bob" || len(facts.Seats) != 3 || facts.Ended < bob.Until {
				t.Fatalf("the facts are %+v", facts)
			}
		}
		_, err = s.at(2).Renew(ctx, hold.Change{Resource: show, ID: "b"})
		fails(t, err, wire.Expired)
		_, err = s.at(2).Hold(ctx, show, hold.TakeRequest{ID: "b", User: "bob", Count: 3})
		fails(t, err, wire.Expired)
		released, err := s.at(1).Release(ctx, hold.Change{Resource: show, ID: "b"})
		ok(t, err)
		equal(t, "state", released.State, hold.Expired)
		_, err = s.at(1).Confirm(ctx, hold.Change{Resource: show, ID: second.ID})
		ok(t, err)
		s.want(2, 0)
	})
}

// TestRemembered checks that ended holds are forgotten after a day in memory, and that a user has
// at most a number of them.
func TestRemembered(t *testing.T) {
	over(t, hold.Options{Remembered: 3}, func(s *setup) {
		t, ctx := s.t, s.t.Context()
		s.put(hold.Resource{Capacity: 2})
		for _, id := range seats("a", "b", "c", "d", "e", "f") {
			_, err := s.at(0).Hold(ctx, show, hold.TakeRequest{ID: id, User: "bob", Count: 1})
			ok(t, err)
			_, err = s.at(1).Release(ctx, hold.Change{Resource: show, ID: id})
			ok(t, err)
			_, err = s.at(2).Get(ctx, show, "a")
			if (err == nil) != (id < "e") {
				t.Fatalf("after hold %s, hold a has the error %v", id, err)
			}
		}
		if s.Memory {
			s.Advance(25 * time.Hour)
			_, err := s.at(0).Get(ctx, show, "f")
			fails(t, err, wire.NotFound)
		}
	})
}

// TestRenew checks the longest life of a hold.
func TestRenew(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		if !s.Memory {
			s.t.Skip("only the clock of memory can be advanced")
		}
		t, ctx := s.t, s.t.Context()
		s.put(hold.Resource{Capacity: 1, HoldMS: 15 * 60_000, MaxLifeMS: 20 * 60_000})
		made, err := s.at(0).Hold(ctx, show, hold.TakeRequest{ID: "a", User: "bob", Count: 1})
		ok(t, err)
		s.Advance(10 * time.Minute)
		renewed, err := s.at(0).Renew(ctx, hold.Change{Resource: show, ID: "a"})
		ok(t, err)
		equal(t, "end", renewed.Until, made.Last)
		s.Advance(9 * time.Minute)
		_, err = s.at(0).Renew(ctx, hold.Change{Resource: show, ID: "a"})
		fails(t, err, wire.OutOfRange)
		s.want(0, 1)
		s.Advance(time.Minute)
		s.want(0, 0)
	})
}

// TestSell checks a sale without a hold: if the caller cannot store it, it releases the sale by its
// id, as often as it likes.
func TestSell(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		t, ctx := s.t, s.t.Context()
		s.put(hold.Resource{Capacity: 2})
		for range 2 {
			sold, err := s.at(0).Sell(ctx, show, hold.TakeRequest{ID: "s", Count: 2})
			ok(t, err)
			equal(t, "state", sold.State, hold.Sold)
		}
		_, err := s.at(1).Sell(ctx, show, hold.TakeRequest{Count: 1})
		fails(t, err, wire.Full)
		for i := range 3 {
			_, err = s.at(i).Release(ctx, hold.Change{Resource: show, ID: "s"})
			ok(t, err)
			s.want(0, 0)
		}
		_, err = s.at(1).Sell(ctx, show, hold.TakeRequest{ID: "s", Count: 2})
		fails(t, err, wire.Expired)
		_, err = s.at(1).Release(ctx, hold.Change{Resource: show, ID: "unknown"})
		fails(t, err, wire.NotFound)
	})
}
