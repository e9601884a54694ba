package events

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

func testEndpointAway(t *testing.T, open opener) {
	s := newStage(t, open, nil)
	s.endpoint.answers(code(500))
	s.user("ann", true)
	_, err := s.DueRound(t.Context())
	ok(t, err)
	equal(t, "did", s.sendFails(), Report{Failed: 1})
	equal(t, "did at once", s.rounds(), Report{}) // it waits
	s.user("ann", false)
	s.pass(t, Grace+hold)
	_, err = s.DueRound(t.Context())
	ok(t, err)
	s.sendFails()
	s.pass(t, lastWait)
	s.endpoint.answers(nil)
	s.rounds()
	s.told("in order", "user_online ann", "user_offline ann")
}

func testRetryAfter(t *testing.T, open opener) {
	s := newStage(t, open, nil)
	s.endpoint.answers(nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	s.user("ann", true)
	_, err := s.DueRound(t.Context())
	ok(t, err)
	s.sendFails()
	s.pass(t, 500*time.Second)
	s.rounds()
	s.told("too early")
	s.pass(t, 100*time.Second)
	s.rounds()
	s.told("then", "user_online ann")
}

func testEndpointGone(t *testing.T, open opener) {
	var log bytes.Buffer
	s := newStage(t, open, func(o *Options) { o.Logger = zerolog.New(&log) })
	s.endpoint.answers(nil, code(410))
	s.user("ann", true)
	equal(t, "did", s.rounds(), Report{Checked: 1, Told: 1, Dead: 1})
	equal(t, "lines in the log", strings.Count(log.String(), `"events":1`), 1)
	s.user("bob", true)
	s.rounds()
	s.told("the next", "user_online bob")
	shard := shardOf("u:", "ann")
	letters, err := s.Dead(t.Context(), shard, 0, 10)
	ok(t, err)
	equal(t, "dead letter", letters[0].Reason, Gone)
	moved, err := s.Retry(t.Context(), shard, 10)
	ok(t, err)
	equal(t, "moved", moved, 1)
	s.rounds()
	s.told("once more", "user_online ann")
}

func testOneRefused(t *testing.T, open opener) {
	s := newStage(t, open, nil)
	picky := func(w http.ResponseWriter, _ *http.Request) {
		switch body := w.Header().Get("Events"); {
		case strings.Contains(body, `"data":3}`):
			w.WriteHeader(http.StatusUnprocessableEntity)
		default:
			w.WriteHeader(http.StatusOK)
		}
	}
	s.endpoint.answers(picky)
	for n := range 5 {
		ok(t, s.WatchDelivery(t.Context(), Delivery{User: "ann", Clients: []Place{{"phone", int64(n + 1)}}, Data: fmt.Append(nil, n+1), After: time.Duration(n+1) * time.Millisecond}))
	}
	s.pass(t, time.Second)
	equal(t, "did", s.rounds(), Report{Checked: 5, Told: 5, Sent: 4, Dead: 1})
	var order []string
	for _, e := range s.endpoint.taken() {
		order = append(order, string(e.Data))
	}
	equal(t, "taken", order, []int{1, 2, 4, 5})
	letters, err := s.Dead(t.Context(), shardOf("u:", "ann"), 0, 10)
	ok(t, err)
	equal(t, "dead letter", letters[0].Reason, Refused)
	equal(t, "a round behind it", s.rounds(), Report{})
}

func testTooLong(t *testing.T, open opener) {
	s := newStage(t, open, func(o *Options) { o.MaxAge = time.Hour })
	s.endpoint.answers(code(404))
	s.user("ann", true)
	_, err := s.DueRound(t.Context())
	ok(t, err)
	s.sendFails()
	shard := shardOf("u:", "ann")
	if s.raw != nil { // the events of another shard than the usual one
		ageEvents(t, s.raw(t), s.keys, shard, time.Hour)
		s.pass(t, time.Hour)
	} else {
		s.pass(t, time.Hour+time.Millisecond)
	}
	did := s.sendFails()
	equal(t, "did", did, Report{Failed: 1, Dead: 1})
	letters, err := s.Dead(t.Context(), shard, 0, 10)
	ok(t, err)
	equal(t, "dead letter", letters[0].Reason, Expired)
	s.endpoint.answers(nil)
	s.pass(t, lastWait*2)
	s.user("ann", false)
	s.pass(t, Grace)
	s.rounds()
	s.told("later ones", "user_offline ann")
}

func testSeveral(t *testing.T, open opener) {
	s := newStage(t, open, nil)
	all := []*Dispatcher{s.Dispatcher, s.another(nil), s.another(nil)}
	const users, steps = 20, 6
	for step := range steps {
		for i := range users {
			s.user(fmt.Sprint("user", i), step%2 == 0)
		}
		s.pass(t, Grace)
		var group sync.WaitGroup
		for _, d := range all {
			group.Go(func() {
				if _, err := d.DueRound(t.Context()); err != nil {
					t.Error(err)
				}
				if _, err := d.SendRound(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
	s.rounds()
	seen := map[string]int{}
	for _, e := range s.endpoint.taken() {
		if want := []Kind{UserOnline, UserOffline}[seen[e.User]%2]; e.Type != want {
			t.Errorf("%s in place %d is out of order", e, seen[e.User])
		}
		seen[e.User]++
	}
	for user, n := range seen {
		equal(t, user, n, steps)
	}
	equal(t, "users", len(seen), users)
	equal(t, "repeated", s.endpoint.again, 0)
}

func testRoundEnds(t *testing.T, open opener) {
	s := newStage(t, open, nil)
	s.user("ann", true)
	_, err := s.DueRound(t.Context())
	ok(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	s.endpoint.answers(nil, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done() // the sender has hung up
	})
	if _, err := s.SendRound(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a round that was told to end: %v", err)
	}
	did, err := s.another(nil).SendRound(t.Context()) // which need not wait for the lease
	ok(t, err)
	equal(t, "the next one did", did.Sent, 1)
}

func TestWait(t *testing.T) {
	for attempts, most := range map[int]time.Duration{0: firstWait, 1: 2 * firstWait, 5: 32 * firstWait, 20: lastWait, 1 << 40: lastWait} {
		for range 100 {
			if d := wait(attempts); d < most/2-time.Millisecond || d > most*3/2+time.Millisecond {
				t.Errorf("behind %d attempts: %v, want about %v", attempts, d, most)
			}
		}
	}
}
