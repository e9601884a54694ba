package hold_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/hold"
)

// TestPut checks versions, and that the capacity cannot be below the places that are taken.
func TestPut(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		t, ctx := s.t, s.t.Context()
		_, err := s.at(0).Hold(ctx, show, hold.TakeRequest{Count: 1})
		fails(t, err, wire.NotFound)
		first, err := s.at(0).Put(ctx, show, hold.PutRequest{Resource: hold.Resource{Capacity: 5}, Match: kit.Match{Absent: true}})
		ok(t, err)
		_, err = s.at(1).Put(ctx, show, hold.PutRequest{Resource: hold.Resource{Capacity: 6}, Match: kit.Match{Absent: true}})
		fails(t, err, wire.Conflict)
		_, err = s.at(1).Hold(ctx, show, hold.TakeRequest{Count: 3})
		ok(t, err)
		_, err = s.at(2).Sell(ctx, show, hold.TakeRequest{Count: 1})
		ok(t, err)
		_, err = s.at(2).Put(ctx, show, hold.PutRequest{Resource: hold.Resource{Capacity: 3}})
		facts := fails(t, err, wire.Conflict).(*hold.Status)
		equal(t, "facts", [3]int{facts.Capacity, facts.Sold, facts.Held}, [3]int{5, 1, 3})
		second, err := s.at(2).Put(ctx, show, hold.PutRequest{Resource: hold.Resource{Capacity: 4}, Match: kit.Match{Version: first.Version}})
		ok(t, err)
		_, err = s.at(2).Put(ctx, show, hold.PutRequest{Resource: hold.Resource{Capacity: 9}, Match: kit.Match{Version: first.Version}})
		fails(t, err, wire.Conflict)
		_, err = s.at(0).Hold(ctx, show, hold.TakeRequest{Count: 1})
		equal(t, "facts", fails(t, err, wire.Full), any(map[string]int{"capacity": 4}))

		fails(t, s.at(1).Delete(ctx, show, kit.Match{Version: first.Version}), wire.Conflict)
		ok(t, s.at(1).Delete(ctx, show, kit.Match{Version: second.Version}))
		_, err = s.at(0).Status(ctx, show)
		fails(t, err, wire.NotFound)
		s.put(hold.Resource{Capacity: 4}) // at once, without the seats of before
		s.want(0, 0)
	})
}

// TestCapacityRace checks that no hold is made by a capacity that a PUT has lowered.
func TestCapacityRace(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		t, ctx := s.t, s.t.Context()
		for range 10 {
			s.put(hold.Resource{Capacity: 8})
			var group sync.WaitGroup
			for i := range 6 {
				group.Go(func() { _, _ = s.at(i).Hold(ctx, show, hold.TakeRequest{Count: 1}) })
			}
			group.Go(func() { _, _ = s.at(1).Put(ctx, show, hold.PutRequest{Resource: hold.Resource{Capacity: 3}}) })
			group.Wait()
			status, err := s.at(0).Status(ctx, show)
			ok(t, err)
			if status.Held > status.Capacity {
				t.Fatalf("%d are held, the capacity is %d", status.Held, status.Capacity)
			}
			ok(t, s.at(0).Delete(ctx, show, kit.Match{}))
		}
	})
}

// TestImport checks the import of a database after a loss of the store.
func TestImport(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		t, ctx := s.t, s.t.Context()
		now := time.Now().UnixMilli()
		r := hold.Resource{Seats: seats("A1..A6")}
		list := []hold.Imported{
			{ID: "s1", User: "bob", Seats: seats("A1", "A2")},
			{ID: "h1", User: "amy", Seats: seats("A3"), Until: now + 60_000},
			{ID: "old", User: "eve", Seats: seats("A4"), Until: now - 60_000},
		}
		status, err := s.at(0).Put(ctx, show, hold.PutRequest{Resource: r, Import: list})
		ok(t, err)
		s.want(2, 1)
		_, err = s.at(1).Put(ctx, show, hold.PutRequest{Resource: r, Import: list})
		fails(t, err, wire.BadRequest)
		list[1].Until = 0 // the database knows that it was sold
		list = append(list, hold.Imported{ID: "s2", Seats: seats("A5")})
		again, err := s.at(1).Put(ctx, show, hold.PutRequest{Resource: r, Import: list, Match: kit.Match{Version: status.Version}})
		ok(t, err)
		s.want(4, 0) // A4 is not held any more: "old" is now a hold of the past
		taken := []hold.Imported{{ID: "s3", Seats: seats("A5")}}
		_, err = s.at(1).Put(ctx, show, hold.PutRequest{Resource: r, Import: taken, Match: kit.Match{Version: again.Version}})
		equal(t, "taken", fails(t, err, wire.Conflict), any(map[string][]string{"taken": {"A5"}}))
		twice := []hold.Imported{{ID: "s4", Seats: seats("A6")}, {ID: "s5", Seats: seats("A6")}}
		_, err = s.at(1).Put(ctx, show, hold.PutRequest{Resource: r, Import: twice, Match: kit.Match{Version: again.Version}})
		fails(t, err, wire.BadRequest)
		other := []hold.Imported{{ID: "s1", User: "bob", Seats: seats("A6")}}
		_, err = s.at(1).Put(ctx, show, hold.PutRequest{Resource: r, Import: other, Match: kit.Match{Version: again.Version}})
		fails(t, err, wire.Conflict)
	})
}

// TestImportAfterDelete imports a sale under the id that another user had in a resource of the same
// name, which was deleted just before.
func TestImportAfterDelete(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		t, ctx := s.t, s.t.Context()
		r := hold.Resource{Seats: seats("A1")}
		for i := range 8 {
			sold := []hold.Imported{{ID: "s1", User: fmt.Sprint("user-", i), Seats: seats("A1")}}
			_, err := s.at(0).Put(ctx, show, hold.PutRequest{Resource: r, Import: sold})
			ok(t, err)
			ok(t, s.at(0).Delete(ctx, show, kit.Match{}))
		}
	})
}

// TestEnds checks that a resource ends with all of its holds and sales.
func TestEnds(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		if !s.Memory {
			s.t.Skip("only the clock of memory can be advanced")
		}
		t, ctx := s.t, s.t.Context()
		s.put(hold.Resource{Capacity: 3, Ends: time.Now().Add(48 * time.Hour).UnixMilli()})
		_, err := s.at(0).Sell(ctx, show, hold.TakeRequest{Count: 2})
		ok(t, err)
		s.Advance(47 * time.Hour)
		s.want(2, 0)
		_, err = s.at(0).Sell(ctx, show, hold.TakeRequest{Count: 1})
		ok(t, err)
		s.Advance(2 * time.Hour)
		_, err = s.at(0).Status(ctx, show)
		fails(t, err, wire.NotFound)
	})
}

// TestBadArguments checks what is refused before the store is asked.
func TestBadArguments(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		if !s.Memory {
			s.t.Skip("the store is not asked")
		}
		t, ctx := s.t, s.t.Context()
		for text, code := range map[string]wire.ErrorCode{
			`{}`:                                wire.BadRequest,
			`{"capacity":-1}`:                   wire.BadRequest,
			`{"capacity":10001}`:                wire.BadRequest,
			`{"seats":["A1..A3"],"capacity":4}`: wire.BadRequest,
			`{"seats":["A1..B3"]}`:              wire.BadRequest,
			`{"seats":["A3..A1"]}`:              wire.BadRequest,
			`{"seats":["A01..A3"]}`:             wire.BadRequest,
			`{"seats":["a b"]}`:                 wire.BadRequest,
			`{"seats":["*"]}`:                   wire.BadRequest,
			`{"capacity":1,"ends":1}`:           wire.BadRequest,
			`{"capacity":1,"hold_ms":-1}`:       wire.BadRequest,
			`{"capacity":1,"hold_ms":60000,"max_life_ms":1000}`: wire.BadRequest,
			`{"capacity":1,"per_user":-1}`:                      wire.BadRequest,
		} {
			var r hold.Resource
			ok(t, json.Unmarshal([]byte(text), &r))
			_, err := s.at(0).Put(ctx, "bad", hold.PutRequest{Resource: r})
			if e := fails(t, err, code); e != nil {
				t.Errorf("%s: %v", text, e)
			}
		}
		s.put(hold.Resource{Seats: seats("A1..A100", "*"), Capacity: 50})
		for _, req := range []hold.TakeRequest{
			{}, {Count: 1}, {Seats: seats("A1", "A1")}, {Seats: seats("A1"), Count: 1}, {Seats: seats("A1"), ID: "a/b"},
			{Seats: seats("A1"), ID: strings.Repeat("x", 49)}, {Seats: seats("A1"), HoldMS: -1}, {Seats: seats("A1"), User: "a b"},
		} {
			if _, err := s.at(0).Hold(ctx, show, req); err == nil {
				t.Errorf("%+v was accepted", req)
			}
		}
		_, err := s.at(0).Hold(ctx, show, hold.TakeRequest{Seats: seats("Z9"), User: strings.Repeat("ü", 100)})
		ok(t, err) // any name is a seat, and the user's name does not fit a field's name
	})
}
