package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TestDispatcher tests a Dispatcher with each implementation of Store.
func TestDispatcher(t *testing.T) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, open openFunc)
	}{
		{"presence of users and channels", testPresence},
		{"a reconnect is no event", testReconnect},
		{"a change that several dispatchers see makes one event", testConcurrentChanges},
		{"an old state is not reported", testOldState},
		{"only wanted kinds", testWanted},
		{"a sweep finds changes that were not recorded", testSweep},
		{"a sweep walks over many entries page by page", testSweepPages},
		{"unacknowledged messages", testUndelivered},
		{"fields that end", testFieldsGone},
		{"own events of fields that end", testTranslate},
		{"fields that end are found without a call", testFieldsSwept},
		{"the tracking of fields that are not wanted ends", testFieldsUnwanted},
		{"a failing truth is queried again", testTruthFails},
		{"many users at once", testMany},

		{"a failing endpoint", testEndpointFails},
		{"an answer with Retry-After", testRetryAfter},
		{"an endpoint that is gone", testEndpointGone},
		{"one refused event", testOneRefused},
		{"an event that is older than MaxAge", testMaxAge},
		{"several dispatchers", testSeveralDispatchers},
		{"a canceled round", testRoundCanceled},
	} {
		t.Run(c.name, func(t *testing.T) { eachStore(t, c.test) })
	}
}

func testPresence(t *testing.T, open openFunc) {
	h := newHarness(t, open, nil)
	h.setUser("ann", true)
	h.setUser("bob", false) // was not reported online
	h.setChannel("news", true)
	h.setChannel("$all", true)
	report := h.runRounds()
	equal(t, "report", report, Report{Checked: 3, Created: 2, Sent: 2})
	events := h.endpoint.take()
	slices.SortFunc(events, func(a, b received) int { return strings.Compare(a.String(), b.String()) })
	equal(t, "events", events, []string{"channel_occupied news", "user_online ann"})
	if events[0].ID == "" || events[0].ID == events[1].ID || events[0].At < epochMS {
		t.Errorf("ids and times: %+v", events)
	}
	h.setUser("ann", false)
	h.setChannel("news", false)
	h.runRounds()
	h.wantEvents("events within the grace")
	h.advance(t, Grace)
	h.runRounds()
	events = h.endpoint.take()
	slices.SortFunc(events, func(a, b received) int { return strings.Compare(a.String(), b.String()) })
	equal(t, "events", events, []string{"channel_vacated news", "user_offline ann"})
	equal(t, "report of a round without work", h.runRounds(), Report{})
}

func testReconnect(t *testing.T, open openFunc) {
	h := newHarness(t, open, nil)
	h.setUser("ann", true)
	h.runRounds()
	h.wantEvents("first event", "user_online ann")
	for range 3 {
		h.setUser("ann", false)
		h.advance(t, Grace/2)
		h.runRounds()
		h.setUser("ann", true)
		h.advance(t, Grace/2)
		h.runRounds()
	}
	h.advance(t, Grace)
	h.runRounds()
	h.wantEvents("events of reconnects")
}

func testConcurrentChanges(t *testing.T, open openFunc) {
	h := newHarness(t, open, nil)
	others := []*Dispatcher{h.newDispatcher(nil), h.newDispatcher(nil)}
	for i, online := range []bool{true, false, true} {
		h.truth.set("u:ann", online)
		var all sync.WaitGroup
		for _, d := range append(others, h.Dispatcher) {
			all.Go(func() {
				for range 10 {
					if err := d.UsersChanged(t.Context(), "ann")[0]; err != nil {
						t.Error(err)
					}
					if _, err := d.DueRound(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		h.advance(t, claimTTL+Grace)
		h.runRounds()
		h.wantEvents(fmt.Sprint("step ", i), []string{"user_online ann", "user_offline ann", "user_online ann"}[i])
	}
}

// slowTruth is a Truth that waits between the query and the answer. Meanwhile the state can change.
type slowTruth struct {
	*fakeTruth
	queried, answer chan struct{}
}

func (s *slowTruth) Online(ctx context.Context, users []string) ([]bool, error) {
	out, err := s.fakeTruth.Online(ctx, users)
	s.queried <- struct{}{}
	<-s.answer
	return out, err
}

func testOldState(t *testing.T, open openFunc) {
	h := newHarness(t, open, nil)
	h.setUser("ann", true)
	h.runRounds()
	h.wantEvents("first event", "user_online ann")
	slow := &slowTruth{h.truth, make(chan struct{}), make(chan struct{})}
	d := h.newDispatcher(func(o *Options) { o.Truth = slow })
	h.setUser("ann", false)
	h.advance(t, Grace)
	done := make(chan Report)
	go func() {
		report, err := d.DueRound(t.Context())
		if err != nil {
			t.Error(err)
		}
		done <- report
	}()
	<-slow.queried
	h.setUser("ann", true) // between the query and the answer
	slow.answer <- struct{}{}
	equal(t, "report", <-done, Report{})
	h.advance(t, Grace)
	h.runRounds()
	h.wantEvents("events of a user that is online")
}

func testWanted(t *testing.T, open openFunc) {
	h := newHarness(t, open, func(o *Options) { o.Wanted = []Kind{UserOffline} })
	h.setUser("ann", true)
	h.setChannel("news", true)
	ok(t, h.SetAckDeadline(t.Context(), AckDeadline{User: "ann", Data: []byte("1"), After: time.Second}))
	equal(t, "report", h.runRounds(), Report{Checked: 1})
	h.setUser("ann", false)
	h.advance(t, Grace)
	h.runRounds()
	h.wantEvents("wanted events", "user_offline ann")
	var none *Recorder // does nothing
	ok(t, none.UsersChanged(t.Context(), "ann")[0])
	ok(t, none.ChannelsChanged(t.Context(), "ann")[0])
	ok(t, none.SetAckDeadline(t.Context(), AckDeadline{}))
}

func testSweep(t *testing.T, open openFunc) {
	h := newHarness(t, open, nil)
	h.setUser("ann", true)
	h.setUser("bob", true)
	h.setChannel("news", true)
	h.runRounds()
	h.endpoint.take()
	h.truth.set("u:ann", false)
	h.truth.set("c:news", false)
	report, err := h.SweepRound(t.Context())
	ok(t, err)
	equal(t, "report of the sweep", report, Report{Checked: 2})
	h.truth.set("c:news", true) // only temporarily absent
	h.runRounds()
	h.wantEvents("events within the grace")
	h.advance(t, Grace)
	h.runRounds()
	h.wantEvents("events after the grace", "user_offline ann")
	report, err = h.SweepRound(t.Context())
	ok(t, err)
	equal(t, "report of the sweep", report, Report{})
}

func testSweepPages(t *testing.T, open openFunc) {
	h := newHarness(t, open, nil)
	const users = 600 // more than a page, and more than Redis returns in one page of a small hash
	for i := range users {
		entry := fmt.Sprintf("u:user-%d", i)
		h.truth.set(entry, true)
		ok(t, h.scheduleOne(t.Context(), 3, entry, 0))
	}
	h.runRounds()
	for i := range users {
		h.truth.set(fmt.Sprintf("u:user-%d", i), false)
	}
	for round := range 10 {
		report, err := h.SweepRound(t.Context())
		ok(t, err)
		if report.Checked > users*2/3 {
			t.Errorf("round %d scheduled %d checks", round, report.Checked)
		}
	}
	h.advance(t, Grace)
	equal(t, "created", h.runRounds().Created, users)
}

func testUndelivered(t *testing.T, open openFunc) {
	h := newHarness(t, open, nil)
	setDeadline := func(d AckDeadline) {
		t.Helper()
		d.After = 30 * time.Second
		ok(t, h.SetAckDeadline(t.Context(), d))
	}
	setDeadline(AckDeadline{User: "ann", Clients: []ClientMessage{{"phone", 1 << 52}, {"tab", 7}}, Data: []byte(`{"n":1}`)})
	setDeadline(AckDeadline{User: "ann", Clients: []ClientMessage{{"tab", 7}, {"watch", 9}}, Data: []byte(`{"n":1}`)}) // a repeat of the same push
	setDeadline(AckDeadline{User: "bob", Clients: []ClientMessage{{"bobs", 8}, {"other", 9}}, Data: []byte(`{"n":2}`)})
	setDeadline(AckDeadline{Clients: []ClientMessage{{"kiosk", 3}}, Data: []byte(`"three"`)})
	setDeadline(AckDeadline{User: "cat", Data: []byte(`4`)})
	h.truth.ack("other", 9)
	h.truth.ack("kiosk", 2)
	h.runRounds()
	h.wantEvents("events before the deadline")
	h.advance(t, 30*time.Second)
	equal(t, "report", h.runRounds(), Report{Checked: 4, Created: 3, Sent: 3})
	events := h.endpoint.take()
	slices.SortFunc(events, func(a, b received) int { return strings.Compare(string(a.Data), string(b.Data)) })
	for i, want := range []string{
		`message_undelivered kiosk "three"`, `cat 4`, `ann {"n":1}`,
	} {
		e := events[i]
		name := e.User
		if name == "" {
			name = string(e.Type) + " " + e.Clients[0].Client
		}
		equal(t, "event", name+" "+string(e.Data), want)
	}
	equal(t, "clients and ids", events[2].Clients, "[{phone 4503599627370496} {tab 7}]")
	first := events[2].ID
	setDeadline(AckDeadline{User: "ann", Clients: []ClientMessage{{"tab", 7}}, Data: []byte(`{"n":1}`)}) // a late repeat of the same push
	h.advance(t, 30*time.Second)
	h.runRounds()
	h.wantEvents("new events after a late repeat")
	equal(t, "repeated events", h.endpoint.repeated, 1)
	equal(t, "the id of the first event is known", h.endpoint.ids[first], true)
}

func testTruthFails(t *testing.T, open openFunc) {
	h := newHarness(t, open, nil)
	h.setUser("ann", true)
	ok(t, h.SetAckDeadline(t.Context(), AckDeadline{User: "ann", Clients: []ClientMessage{{"phone", 1}}, Data: []byte("1"), After: time.Millisecond}))
	h.advance(t, time.Second)
	errTruth := errors.New("truth fails")
	h.truth.fail(errTruth)
	_, err := h.DueRound(t.Context())
	wantError(t, "DueRound", err, errTruth)
	_, err = h.SweepRound(t.Context())
	ok(t, err) // no entry is reported present
	h.truth.fail(nil)
	equal(t, "report while the entries are claimed", h.runRounds(), Report{})
	h.advance(t, claimTTL)
	h.runRounds()
	equal(t, "events", len(h.endpoint.take()), 2)
	h.truth.fail(errTruth)
	_, err = h.SweepRound(t.Context())
	wantError(t, "SweepRound", err, errTruth)
}

func testMany(t *testing.T, open openFunc) {
	h := newHarness(t, open, nil)
	const users = 6000 // more than a page in each shard
	var all sync.WaitGroup
	for i := range users {
		name := fmt.Sprintf("user-%d", i)
		h.truth.set("u:"+name, true)
		all.Go(func() {
			if err := h.UsersChanged(t.Context(), name)[0]; err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	equal(t, "report", h.runRounds(), Report{Checked: users, Created: users, Sent: users})
	equal(t, "accepted", len(h.endpoint.take()), users)
	if n := h.endpoint.deliveries(); n < users/100 || n > users/100+Shards {
		t.Errorf("%d deliveries of at most 100 events for %d users", n, users)
	}
}

func TestBadOptions(t *testing.T) {
	good := Options{Store: NewMemory(StoreOptions{}), Truth: &fakeTruth{}, Sender: &noSender{}}
	for what, change := range map[string]func(*Options){
		"Store":     func(o *Options) { o.Store = nil },
		"MaxAge":    func(o *Options) { o.MaxAge = -1 },
		"user_onln": func(o *Options) { o.Wanted = []Kind{"user_onln"} },
	} {
		o := good
		change(&o)
		if _, err := NewDispatcher(o); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	good.Registerer = prometheus.NewRegistry()
	_, err := NewDispatcher(good)
	ok(t, err)
	if _, err := NewDispatcher(good); err == nil {
		t.Error("metrics were registered twice without an error")
	}
	if (StoreOptions{Prefix: "{x}"}).Validate() == nil {
		t.Error("Validate accepts a brace in the prefix")
	}
}

type noSender struct{}

func (noSender) Send(context.Context, [][]byte) error { return nil }
func (noSender) Timeout() time.Duration               { return time.Second }

func TestBadAckDeadlines(t *testing.T) {
	r := NewRecorder(NewMemory(StoreOptions{}), nil)
	for what, d := range map[string]AckDeadline{
		"time": {User: "ann", Data: []byte("1")},
		"user": {Data: []byte("1"), After: time.Second},
		"JSON": {User: "ann", Data: []byte("{"), After: time.Second},
	} {
		if err := r.SetAckDeadline(t.Context(), d); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
