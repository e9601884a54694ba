package hold_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/hold"
)

// late makes the next change of a store in memory arrive half a second after its read.
func (s *setup) late() {
	if s.Memory {
		s.Before(func() { s.Advance(500 * time.Millisecond) })
	}
}

// stored checks that a hold is answered as it is stored: by a read, and in the fields of its seats.
func (s *setup) stored(what string, answer *hold.Hold) {
	s.t.Helper()
	ctx := s.t.Context()
	got, err := s.at(1).Get(ctx, show, answer.ID)
	ok(s.t, err)
	equal(s.t, what, *got, *answer)
	mine, err := s.at(2).Of(ctx, show, answer.User)
	ok(s.t, err)
	equal(s.t, what+" in the list of the user", *mine[0], *answer)
	for _, seat := range answer.Seats {
		fields, err := s.hosts[0].ReadState(ctx, "hold:"+show, "seat/"+seat)
		ok(s.t, err)
		until := int64(0)
		if f := fields["seat/"+seat]; f != nil {
			until = f.Until()
		}
		equal(s.t, what+": the end of seat "+seat, until, answer.Until)
	}
}

// TestAnsweredTimesAreStored checks the times in the answers of all operations, while the store is
// slow. A repeat with the same id answers the same ones.
func TestAnsweredTimesAreStored(t *testing.T) {
	over(t, hold.Options{MaxLife: 16 * time.Minute}, func(s *setup) {
		t, ctx := s.t, s.t.Context()
		s.put(hold.Resource{Seats: seats("A1..A10")})
		take := hold.TakeRequest{ID: "order-1", User: "bob", Seats: seats("A1", "A2"), HoldMS: (5 * time.Minute).Milliseconds()}
		s.late()
		made, err := s.at(0).Hold(ctx, show, take)
		ok(t, err)
		s.stored("a hold", made)
		equal(t, "how long it lasts", made.Until-made.Created, (5 * time.Minute).Milliseconds())
		equal(t, "how long it lasts at most", made.Last-made.Created, (16 * time.Minute).Milliseconds())
		again, err := s.at(2).Hold(ctx, show, take)
		ok(t, err)
		equal(t, "a repeated hold", *again, *made)

		change := hold.Change{Resource: show, ID: "order-1"}
		s.late()
		renewed, err := s.at(0).Renew(ctx, change)
		ok(t, err)
		s.stored("a renewed hold", renewed)
		if renewed.Until <= made.Until || renewed.Until > renewed.Last {
			t.Errorf("it was renewed from %d to %d, at most %d", made.Until, renewed.Until, renewed.Last)
		}

		s.late()
		sold, err := s.at(0).Confirm(ctx, change)
		ok(t, err)
		s.stored("a sale", sold)
		again, err = s.at(1).Confirm(ctx, change)
		ok(t, err)
		equal(t, "a repeated confirm", *again, *sold)
		s.late()
		released, err := s.at(0).Release(ctx, change)
		ok(t, err)
		s.stored("a released sale", released)
		again, err = s.at(1).Release(ctx, change)
		ok(t, err)
		equal(t, "a repeated release", *again, *released)

		s.late()
		direct, err := s.at(0).Sell(ctx, show, hold.TakeRequest{ID: "order-2", User: "bob", Seats: seats("A3")})
		ok(t, err)
		s.stored("a direct sale", direct)
	})
}

// TestRenewalsEndInTime checks that no renewal passes the longest life, even if the store is slow.
func TestRenewalsEndInTime(t *testing.T) {
	over(t, hold.Options{HoldTime: time.Minute, MaxLife: time.Minute + time.Second}, func(s *setup) {
		t, ctx := s.t, s.t.Context()
		s.put(hold.Resource{Capacity: 1})
		made, err := s.at(0).Hold(ctx, show, hold.TakeRequest{ID: "a", User: "bob", Count: 1})
		ok(t, err)
		for range 4 {
			s.late()
			renewed, err := s.at(0).Renew(ctx, hold.Change{Resource: show, ID: "a"})
			if codeOf(err) == wire.OutOfRange {
				break
			}
			ok(t, err)
			s.stored("a renewed hold", renewed)
			if renewed.Until > made.Last {
				t.Fatalf("it was renewed until %d, at most %d", renewed.Until, made.Last)
			}
		}
	})
}

// TestImportedTimes checks that a hold is imported with its end, that one whose end has passed is
// skipped, and that any other time is refused: a time so far away that its distance overflows, too.
func TestImportedTimes(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		t, ctx := s.t, s.t.Context()
		status := s.put(hold.Resource{Seats: seats("A1..A10")})
		now := time.Now().UnixMilli()
		until := now + time.Hour.Milliseconds()
		put := func(until int64, id, seat string) error {
			s.late()
			put, err := s.at(0).Put(ctx, show, hold.PutRequest{
				Resource: hold.Resource{Seats: seats("A1..A10")}, Match: kit.Match{Version: status.Version},
				Import: []hold.Imported{{ID: id, User: "bob", Seats: seats(seat), Until: until}},
			})
			if err == nil {
				status = put
			}
			return err
		}
		ok(t, put(until, "a", "A1"))
		imported, err := s.at(1).Get(ctx, show, "a")
		ok(t, err)
		equal(t, "the end of an imported hold", imported.Until, until)
		s.stored("an imported hold", imported)
		ok(t, put(now-1000, "past", "A2"))
		_, err = s.at(1).Get(ctx, show, "past")
		fails(t, err, wire.NotFound)
		for _, until := range []int64{-1, math.MinInt64, now + 31*24*time.Hour.Milliseconds(), math.MaxInt64/1_000_000 + now, math.MaxInt64} {
			for id, seat := range map[string]string{"b": "A3", "a": "A1"} { // a exists
				err := put(until, id, seat)
				if fails(t, err, wire.BadRequest); !strings.Contains(err.Error(), fmt.Sprintf("import[0]: until: %d ", until)) {
					t.Errorf("the error does not say where: %v", err)
				}
			}
		}
		s.want(0, 1)
	})
}

// TestEndsFarAway checks that a resource whose end is too far away for a time.Duration is refused,
// and not removed at once.
func TestEndsFarAway(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		t, ctx := s.t, s.t.Context()
		ends := time.Now().UnixMilli() + (99 * 365 * 24 * time.Hour).Milliseconds()
		s.put(hold.Resource{Capacity: 1, Ends: ends})
		status, err := s.at(1).Status(ctx, show)
		ok(t, err)
		equal(t, "the end", status.Ends, ends)
		for _, ends := range []int64{math.MaxInt64, math.MaxInt64 / 1_000_000 * 2, time.Now().UnixMilli() + (101 * 365 * 24 * time.Hour).Milliseconds()} {
			_, err := s.at(0).Put(ctx, show, hold.PutRequest{Resource: hold.Resource{Capacity: 1, Ends: ends}})
			fails(t, err, wire.BadRequest)
		}
	})
}
