package hold_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"switchboard/broker/namespace"
	"switchboard/client"
	holdclient "switchboard/client/hold"
	"switchboard/internal/await"
	"switchboard/internal/meter"
	"switchboard/internal/wire"
	"switchboard/kit/hold"
	"switchboard/queue"
)

// manySeats returns a request for a resource whose seats A1 to A640 are taken: the first half is
// sold, and the others are held for a time.
func manySeats(until int64) hold.PutRequest {
	req := hold.PutRequest{Resource: hold.Resource{Seats: []string{"A1..A9999"}}}
	for i := range 10 {
		one := hold.Imported{ID: fmt.Sprint("i", i), User: fmt.Sprint("u", i)}
		for k := range 64 {
			one.Seats = append(one.Seats, fmt.Sprint("A", 64*i+k+1))
		}
		if i >= 5 {
			one.Until = until
		}
		req.Import = append(req.Import, one)
	}
	return req
}

// TestAvailabilityIsCheap checks that the availability of a resource costs the same however many
// seats are taken, and that a name that is given twice is read once.
func TestAvailabilityIsCheap(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		t, ctx := s.t, s.t.Context()
		s.put(hold.Resource{Seats: []string{"B1"}})
		made, err := s.at(0).Hold(ctx, show, hold.TakeRequest{Seats: []string{"B1"}}) // tells the time of the store
		ok(t, err)
		const name = "large"
		_, err = s.at(0).Put(ctx, name, manySeats(made.Until))
		ok(t, err)
		m := new(meter.Meter)
		list, err := s.at(1).Statuses(meter.With(ctx, m), slices.Repeat([]string{name}, hold.MaxResources))
		ok(t, err)
		for _, one := range list {
			if one.Sold != 320 || one.Held != 320 || one.Free != 9999-640 {
				t.Fatalf("%+v", one)
			}
		}
		if n := m.Bytes(); n > 1000 {
			t.Errorf("%d bytes were read", n)
		}
	})
}

// TestExpiredAreRemoved checks that the round removes the fields of holds that have expired, so
// that no look has to look at them.
func TestExpiredAreRemoved(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		if s.Memory { // the clock of its due list cannot be advanced
			return
		}
		t, ctx := s.t, s.t.Context()
		s.put(hold.Resource{Capacity: 9, HoldMS: s.short.Milliseconds()})
		made, err := s.at(0).Hold(ctx, show, hold.TakeRequest{Count: 3})
		ok(t, err)
		ok(t, s.at(0).Round(ctx))
		s.pass(made)
		s.want(0, 0)
		await.True(t, "no field is due after a round", func() bool { // another broker may have begun one
			ok(t, s.at(0).Round(ctx))
			o := s.queue.ReadStates(ctx, []queue.StateRead{{Channel: "hold:" + show, Prefix: "seat/"}})[0]
			ok(t, o.Err)
			return o.Value.Due == 0 || o.Value.Due > o.Value.Clock
		})
	})
}

// TestResourcesOfClients checks that hold.resources needs the right to read, and is bounded in
// bytes.
func TestResourcesOfClients(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		t, ctx := s.t, s.t.Context()
		var names []string
		for i := range 40 {
			r := hold.Resource{Capacity: 900}
			for k := range 900 {
				r.Seats = append(r.Seats, fmt.Sprint("seat-", i, "-", k))
			}
			names = append(names, fmt.Sprint("r", i))
			_, err := s.at(0).Put(ctx, names[i], hold.PutRequest{Resource: r})
			ok(t, err)
		}
		c := s.At(0).Connect(t, "", nil)
		list, err := holdclient.Resources(ctx, c, names[:10]...)
		ok(t, err)
		if len(list) != 10 || list[9] == nil || list[9].Free != 900 {
			t.Errorf("%d resources", len(list))
		}
		if _, err = holdclient.Resources(ctx, c, names...); codeOfClient(err) != wire.TooLarge {
			t.Errorf("40 resources of 12 KB: %v", err)
		}
	})
	over(t, hold.Options{Read: new(namespace.BackendOnly)}, func(s *setup) {
		s.put(hold.Resource{Capacity: 9})
		if _, err := holdclient.Resources(s.t.Context(), s.At(0).Connect(s.t, "amy", nil), show); codeOfClient(err) != wire.Forbidden {
			s.t.Errorf("a client that may not read: %v", err)
		}
	})
}

// codeOfClient returns the code of an error that a client has received.
func codeOfClient(err error) wire.ErrorCode {
	e, _ := errors.AsType[*client.Error](err)
	if e == nil {
		return ""
	}
	return wire.ErrorCode(e.Code)
}
