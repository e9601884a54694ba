package hold_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/hold"
)

// TestManyUsers lets 1,000 users take 100 places over three brokers. Some confirm, some release,
// some let their hold expire, and others take the places meanwhile. Then it replays the log: at no
// id are more places taken than there are, and no place that was sold is held again.
func TestManyUsers(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		const users, capacity = 1000, 100
		t, ctx := s.t, s.t.Context()
		s.put(hold.Resource{Capacity: capacity, HoldMS: s.short.Milliseconds()})
		var made, sold, full atomic.Int64
		var group sync.WaitGroup
		for i := range users {
			group.Go(func() {
				h := s.at(i)
				got, err := h.Hold(ctx, show, hold.TakeRequest{User: fmt.Sprint("user-", i), Count: 1 + i%2})
				if err != nil {
					if codeOf(err) != wire.Full {
						t.Errorf("hold of user %d: %v", i, err)
					}
					full.Add(1)
					return
				}
				made.Add(1)
				c := hold.Change{Resource: show, ID: got.ID}
				switch rand.IntN(4) {
				case 0:
					_, err = s.at(i+1).Confirm(ctx, c)
					if err == nil {
						sold.Add(int64(len(got.Seats)))
					}
				case 1:
					_, err = s.at(i+1).Release(ctx, c)
				case 2:
					_, err = s.at(i+1).Renew(ctx, c)
				}
				if err != nil && codeOf(err) != wire.Expired {
					t.Errorf("user %d: %v", i, err)
				}
			})
		}
		group.Wait()
		most := replay(s, capacity)
		status, err := s.at(0).Status(ctx, show)
		ok(t, err)
		t.Logf("%d holds, %d refused, at most %d places taken at an id, %d sold", made.Load(), full.Load(), most, status.Sold)
		if int64(status.Sold) != sold.Load() || most < capacity-1 {
			t.Errorf("%d places are sold, %d were confirmed; at most %d were taken", status.Sold, sold.Load(), most)
		}
	})
}

// replay folds the log of the channel, and checks each id. It returns the most places that were
// taken.
func replay(s *setup, capacity int) (most int) {
	s.t.Helper()
	m, sold := state.NewMap(0), make(map[string]bool)
	for after := int64(0); ; {
		page, err := s.hosts[0].History(s.t.Context(), "hold:"+show, after, 1000)
		ok(s.t, err)
		for _, message := range page.Messages {
			after = message.ID
			entry, err := state.DecodeEntry(message.Data)
			ok(s.t, err)
			if len(m.Fields) == 0 && entry.Set["$resource"] == nil {
				s.t.Fatalf("the log begins with %s", message.Data)
			}
			m.Apply(message.ID, entry)
			taken := 0
			for name, f := range m.Fields {
				if state.Group(name) == "seat/" {
					taken++
					if string(f.Value) == `{"s":"sold"}` {
						sold[name] = true
					} else if sold[name] {
						s.t.Fatalf("%s was sold, and is %s at %d", name, f.Value, m.ID)
					}
				}
			}
			if most = max(most, taken); taken > capacity {
				s.t.Fatalf("%d places are taken at %d", taken, m.ID)
			}
		}
		if !page.More {
			return most
		}
	}
}

// TestBrokerStops lets users hold over HTTP while a broker shuts down. A user whose call fails
// repeats it at another broker with the same id: it never gets two holds, nor loses one.
func TestBrokerStops(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		if s.Memory {
			s.t.Skip("there is one broker")
		}
		const users, capacity = 300, 200
		t, ctx := s.t, s.t.Context()
		s.put(hold.Resource{Capacity: capacity})
		var held, repeated atomic.Int64
		var group sync.WaitGroup
		for i := range users {
			group.Go(func() {
				if i == users/3 {
					s.At(2).Stop()
				}
				body := fmt.Sprintf(`{"id":"id-%d","user":"user-%d","count":1}`, i, i)
				for n := i; ; n++ {
					resp, err := http.Post("http://"+s.At(n).HTTP+"/v1/holds/"+show+"/holds", "application/json", strings.NewReader(body))
					if err == nil {
						_ = resp.Body.Close()
					}
					switch {
					case err != nil || resp.StatusCode == http.StatusServiceUnavailable:
						repeated.Add(1)
						continue
					case resp.StatusCode == http.StatusOK:
						held.Add(1)
					case resp.StatusCode != http.StatusConflict: // full
						t.Errorf("user %d: status %d", i, resp.StatusCode)
					}
					return
				}
			})
		}
		group.Wait()
		status, err := s.at(0).Status(ctx, show)
		ok(t, err)
		t.Logf("%d calls were repeated", repeated.Load())
		equal(t, "held, and answered so", [2]int{status.Held, int(held.Load())}, [2]int{capacity, capacity})
		equal(t, "most places taken", replay(s, capacity), capacity)
	})
}

// TestTwoCleaners checks that many processes that notice the end of a hold end it once, and that a
// confirm at the same time either sells the places or fails: they are never free and sold.
func TestTwoCleaners(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		t, ctx := s.t, s.t.Context()
		for i := range 5 {
			s.put(hold.Resource{Capacity: 1, HoldMS: s.short.Milliseconds()})
			made, err := s.at(0).Hold(ctx, show, hold.TakeRequest{User: "bob", Count: 1})
			ok(t, err)
			s.pass(made)
			var group sync.WaitGroup
			var confirmed, taken atomic.Int64
			group.Go(func() {
				if _, err := s.at(i).Confirm(ctx, hold.Change{Resource: show, ID: made.ID}); err == nil {
					confirmed.Add(1)
				}
			})
			for n := range 4 {
				group.Go(func() {
					if _, err := s.at(n).Sell(ctx, show, hold.TakeRequest{Count: 1}); err == nil {
						taken.Add(1)
					}
				})
			}
			group.Wait()
			equal(t, "confirmed, and sold to others", [2]int64{confirmed.Load(), taken.Load()}, [2]int64{0, 1})
			if !s.Memory { // there the clock has advanced beyond the age of the log
				equal(t, "most places taken", replay(s, 1), 1)
			}
			s.want(1, 0)
			ok(t, s.at(0).Delete(ctx, show, kit.Match{}))
		}
	})
}

// TestInterrupted changes what an operation has read before it writes.
func TestInterrupted(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		if !s.Memory {
			s.t.Skip("only memory can be interrupted")
		}
		t, ctx := s.t, s.t.Context()
		type change = func(context.Context, hold.Change) (*hold.Hold, error)
		for name, op := range map[string]change{"confirm": s.at(0).Confirm, "renew": s.at(0).Renew} {
			s.put(hold.Resource{Capacity: 1})
			c := hold.Change{Resource: show, ID: name}
			_, err := s.at(0).Hold(ctx, show, hold.TakeRequest{ID: name, Count: 1})
			ok(t, err)
			s.Advance(14 * time.Minute)
			s.Before(func() { s.Advance(time.Minute) })
			_, err = op(ctx, c)
			equal(t, name+" after the end", fails(t, err, wire.Expired).(*hold.Hold).State, hold.Expired)
			s.want(0, 0)

			c.ID += "2"
			_, err = s.at(0).Hold(ctx, show, hold.TakeRequest{ID: c.ID, Count: 1})
			ok(t, err)
			s.Advance(time.Minute)
			s.Before(func() {
				_, err := s.at(0).Release(ctx, c)
				ok(t, err)
				_, err = s.at(0).Sell(ctx, show, hold.TakeRequest{Count: 1})
				ok(t, err)
			})
			_, err = op(ctx, c)
			equal(t, name+" after the release", fails(t, err, wire.Expired).(*hold.Hold).State, hold.Released)
			s.want(1, 0)
			ok(t, s.at(0).Delete(ctx, show, kit.Match{}))
		}

		s.put(hold.Resource{Capacity: 2})
		s.Before(func() { s.put(hold.Resource{Capacity: 1}) })
		_, err := s.at(0).Hold(ctx, show, hold.TakeRequest{Count: 2})
		fails(t, err, wire.Full)
		s.Before(func() {
			_, err := s.at(0).Hold(ctx, show, hold.TakeRequest{ID: "h", Count: 1})
			ok(t, err)
		})
		s.put(hold.Resource{Capacity: 3})
		_, err = s.at(0).Hold(ctx, show, hold.TakeRequest{Count: 2})
		ok(t, err)
		s.Before(func() {
			_, err := s.at(0).Confirm(ctx, hold.Change{Resource: show, ID: "h"})
			ok(t, err)
		})
		released, err := s.at(0).Release(ctx, hold.Change{Resource: show, ID: "h"})
		ok(t, err)
		if released.Sold == 0 {
			t.Errorf("the sale before the release is missing in %+v", released)
		}
		s.want(0, 2)
		s.Before(func() {
			_, err := s.at(0).Hold(ctx, show, hold.TakeRequest{Count: 1})
			ok(t, err)
		})
		_, err = s.at(0).Put(ctx, show, hold.PutRequest{Resource: hold.Resource{Capacity: 2}})
		fails(t, err, wire.Conflict)
		s.want(0, 3)
	})
}

// TestConfirmRacesExpiry confirms holds at about the time of their end. The store decides.
func TestConfirmRacesExpiry(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		if s.Memory {
			s.t.Skip("its clock is advanced by the test")
		}
		t, ctx := s.t, s.t.Context()
		s.put(hold.Resource{Capacity: 200, HoldMS: 20})
		var group sync.WaitGroup
		var sold, expired atomic.Int64
		for i := range 200 {
			group.Go(func() {
				made, err := s.at(i).Hold(ctx, show, hold.TakeRequest{Count: 1})
				if err != nil {
					t.Errorf("hold: %v", err)
					return
				}
				for range rand.IntN(8) { // each takes about a millisecond
					_, _ = s.at(i).Get(ctx, show, made.ID)
				}
				switch _, err := s.at(i+1).Confirm(ctx, hold.Change{Resource: show, ID: made.ID}); {
				case err == nil:
					sold.Add(1)
				case codeOf(err) == wire.Expired:
					expired.Add(1)
				default:
					t.Errorf("confirm: %v", err)
				}
			})
		}
		group.Wait()
		t.Logf("%d sold, %d expired", sold.Load(), expired.Load())
		replay(s, 200)
		s.want(int(sold.Load()), 0)
	})
}
