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

func testEndpointFails(t *testing.T, open openFunc) {
	h := newHarness(t, open, nil)
	h.endpoint.setAnswers(status(500))
	h.setUser("ann", true)
	_, err := h.DueRound(t.Context())
	ok(t, err)
	equal(t, "report", h.sendFailing(), Report{Failed: 1})
	equal(t, "report before the next attempt is due", h.runRounds(), Report{})
	h.setUser("ann", false)
	h.advance(t, Grace+claimTTL)
	_, err = h.DueRound(t.Context())
	ok(t, err)
	h.sendFailing()
	h.advance(t, maxRetryDelay)
	h.endpoint.setAnswers(nil)
	h.runRounds()
	h.wantEvents("events in order", "user_online ann", "user_offline ann")
}

func testRetryAfter(t *testing.T, open openFunc) {
	h := newHarness(t, open, nil)
	h.endpoint.setAnswers(nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	h.setUser("ann", true)
	_, err := h.DueRound(t.Context())
	ok(t, err)
	h.sendFailing()
	h.advance(t, 500*time.Second)
	h.runRounds()
	h.wantEvents("events before Retry-After")
	h.advance(t, 100*time.Second)
	h.runRounds()
	h.wantEvents("events after Retry-After", "user_online ann")
}

func testEndpointGone(t *testing.T, open openFunc) {
	var log bytes.Buffer
	h := newHarness(t, open, func(o *Options) { o.Logger = zerolog.New(&log) })
	h.endpoint.setAnswers(nil, status(410))
	h.setUser("ann", true)
	equal(t, "report", h.runRounds(), Report{Checked: 1, Created: 1, DeadLettered: 1})
	equal(t, "lines in the log", strings.Count(log.String(), `"events":1`), 1)
	h.setUser("bob", true)
	h.runRounds()
	h.wantEvents("next event", "user_online bob")
	shard := shardOf("u:", "ann")
	letters, err := h.DeadLetters(t.Context(), shard, 0, 10)
	ok(t, err)
	equal(t, "dead letter", letters[0].Reason, Gone)
	moved, err := h.Requeue(t.Context(), shard, 10)
	ok(t, err)
	equal(t, "moved", moved, 1)
	h.runRounds()
	h.wantEvents("requeued event", "user_online ann")
}

func testOneRefused(t *testing.T, open openFunc) {
	h := newHarness(t, open, nil)
	refuseThird := func(w http.ResponseWriter, _ *http.Request) {
		switch body := w.Header().Get("Events"); {
		case strings.Contains(body, `"data":3}`):
			w.WriteHeader(http.StatusUnprocessableEntity)
		default:
			w.WriteHeader(http.StatusOK)
		}
	}
	h.endpoint.setAnswers(refuseThird)
	for n := range 5 {
		ok(t, h.SetAckDeadline(t.Context(), AckDeadline{User: "ann", Clients: []ClientMessage{{"phone", int64(n + 1)}}, Data: fmt.Append(nil, n+1), After: time.Duration(n+1) * time.Millisecond}))
	}
	h.advance(t, time.Second)
	equal(t, "report", h.runRounds(), Report{Checked: 5, Created: 5, Sent: 4, DeadLettered: 1})
	var order []string
	for _, e := range h.endpoint.take() {
		order = append(order, string(e.Data))
	}
	equal(t, "accepted", order, []int{1, 2, 4, 5})
	letters, err := h.DeadLetters(t.Context(), shardOf("u:", "ann"), 0, 10)
	ok(t, err)
	equal(t, "dead letter", letters[0].Reason, Refused)
	equal(t, "report of the next round", h.runRounds(), Report{})
}

func testMaxAge(t *testing.T, open openFunc) {
	h := newHarness(t, open, func(o *Options) { o.MaxAge = time.Hour })
	h.endpoint.setAnswers(status(404))
	h.setUser("ann", true)
	_, err := h.DueRound(t.Context())
	ok(t, err)
	h.sendFailing()
	shard := shardOf("u:", "ann")
	if h.client != nil { // h.ageEvents ages the events of shard 3 only
		ageEvents(t, h.client(t), h.keys, shard, time.Hour)
		h.advance(t, time.Hour)
	} else {
		h.advance(t, time.Hour+time.Millisecond)
	}
	report := h.sendFailing()
	equal(t, "report", report, Report{Failed: 1, DeadLettered: 1})
	letters, err := h.DeadLetters(t.Context(), shard, 0, 10)
	ok(t, err)
	equal(t, "dead letter", letters[0].Reason, Expired)
	h.endpoint.setAnswers(nil)
	h.advance(t, maxRetryDelay*2)
	h.setUser("ann", false)
	h.advance(t, Grace)
	h.runRounds()
	h.wantEvents("later events", "user_offline ann")
}

func testSeveralDispatchers(t *testing.T, open openFunc) {
	h := newHarness(t, open, nil)
	all := []*Dispatcher{h.Dispatcher, h.newDispatcher(nil), h.newDispatcher(nil)}
	const users, steps = 20, 6
	for step := range steps {
		for i := range users {
			h.setUser(fmt.Sprint("user", i), step%2 == 0)
		}
		h.advance(t, Grace)
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
	h.runRounds()
	seen := map[string]int{}
	for _, e := range h.endpoint.take() {
		if want := []Kind{UserOnline, UserOffline}[seen[e.User]%2]; e.Type != want {
			t.Errorf("%s is event %d of its user: out of order", e, seen[e.User])
		}
		seen[e.User]++
	}
	for user, n := range seen {
		equal(t, user, n, steps)
	}
	equal(t, "users", len(seen), users)
	equal(t, "repeated events", h.endpoint.repeated, 0)
}

func testRoundCanceled(t *testing.T, open openFunc) {
	h := newHarness(t, open, nil)
	h.setUser("ann", true)
	_, err := h.DueRound(t.Context())
	ok(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	h.endpoint.setAnswers(nil, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done() // the sender has closed the connection
	})
	if _, err := h.SendRound(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("SendRound with a canceled context: %v", err)
	}
	report, err := h.newDispatcher(nil).SendRound(t.Context()) // the first round has released the lease
	ok(t, err)
	equal(t, "events sent by the next round", report.Sent, 1)
}

func TestRetryDelay(t *testing.T) {
	for attempts, most := range map[int]time.Duration{0: firstRetryDelay, 1: 2 * firstRetryDelay, 5: 32 * firstRetryDelay, 20: maxRetryDelay, 1 << 40: maxRetryDelay} {
		for range 100 {
			if d := retryDelay(attempts); d < most/2-time.Millisecond || d > most*3/2+time.Millisecond {
				t.Errorf("after %d attempts: %v, want about %v", attempts, d, most)
			}
		}
	}
}
