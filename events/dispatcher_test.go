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

// TestDispatcher runs over every store.
func TestDispatcher(t *testing.T) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, open opener)
	}{
		{"users and channels come and go", testPresence},
		{"a reconnect is no event", testReconnect},
		{"what several saw is told once", testSeenBySeveral},
		{"an old truth is not told", testOldTruth},
		{"only what is wanted", testWanted},
		{"who was killed could note nothing", testSweep},
		{"who was killed could note nothing, among many", testSweepInParts},
		{"nobody has acknowledged", testUndelivered},
		{"a truth that cannot be had is asked for again", testTruthAway},
		{"many at once", testMany},

		{"an endpoint that is away", testEndpointAway},
		{"an answer that asks for time", testRetryAfter},
		{"an endpoint that is gone", testEndpointGone},
		{"an event that is refused", testOneRefused},
		{"an endpoint that is away too long", testTooLong},
		{"several dispatchers", testSeveral},
		{"the end of a round", testRoundEnds},
	} {
		t.Run(c.name, func(t *testing.T) { eachStore(t, c.test) })
	}
}

func testPresence(t *testing.T, open opener) {
	s := newStage(t, open, nil)
	s.user("ann", true)
	s.user("bob", false) // nobody believed that he is there
	s.channel("news", true)
	s.channel("$all", true)
	did := s.rounds()
	equal(t, "did", did, Report{Checked: 3, Told: 2, Sent: 2})
	events := s.endpoint.taken()
	slices.SortFunc(events, func(a, b got) int { return strings.Compare(a.String(), b.String()) })
	equal(t, "told", events, []string{"channel_occupied news", "user_online ann"})
	if events[0].ID == "" || events[0].ID == events[1].ID || events[0].At < epochMS {
		t.Errorf("ids and times: %+v", events)
	}
	s.user("ann", false)
	s.channel("news", false)
	s.rounds()
	s.told("within the grace")
	s.pass(t, Grace)
	s.rounds()
	events = s.endpoint.taken()
	slices.SortFunc(events, func(a, b got) int { return strings.Compare(a.String(), b.String()) })
	equal(t, "told", events, []string{"channel_vacated news", "user_offline ann"})
	equal(t, "a round without anything to do", s.rounds(), Report{})
}

func testReconnect(t *testing.T, open opener) {
	s := newStage(t, open, nil)
	s.user("ann", true)
	s.rounds()
	s.told("at first", "user_online ann")
	for range 3 {
		s.user("ann", false)
		s.pass(t, Grace/2)
		s.rounds()
		s.user("ann", true)
		s.pass(t, Grace/2)
		s.rounds()
	}
	s.pass(t, Grace)
	s.rounds()
	s.told("of reconnects")
}

func testSeenBySeveral(t *testing.T, open opener) {
	s := newStage(t, open, nil)
	others := []*Dispatcher{s.another(nil), s.another(nil)}
	for i, online := range []bool{true, false, true} {
		s.truth.set("u:ann", online)
		var all sync.WaitGroup
		for _, d := range append(others, s.Dispatcher) {
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
		s.pass(t, hold+Grace)
		s.rounds()
		s.told(fmt.Sprint("step ", i), []string{"user_online ann", "user_offline ann", "user_online ann"}[i])
	}
}

// slowTruth answers, and then waits: what it said is old by then.
type slowTruth struct {
	*fakeTruth
	asked, answer chan struct{}
}

func (s *slowTruth) Online(ctx context.Context, users []string) ([]bool, error) {
	out, err := s.fakeTruth.Online(ctx, users)
	s.asked <- struct{}{}
	<-s.answer
	return out, err
}

func testOldTruth(t *testing.T, open opener) {
	s := newStage(t, open, nil)
	s.user("ann", true)
	s.rounds()
	s.told("at first", "user_online ann")
	slow := &slowTruth{s.truth, make(chan struct{}), make(chan struct{})}
	d := s.another(func(o *Options) { o.Truth = slow })
	s.user("ann", false)
	s.pass(t, Grace)
	done := make(chan Report)
	go func() {
		did, err := d.DueRound(t.Context())
		if err != nil {
			t.Error(err)
		}
		done <- did
	}()
	<-slow.asked
	s.user("ann", true) // while the other one thinks about it
	slow.answer <- struct{}{}
	equal(t, "did", <-done, Report{})
	s.pass(t, Grace)
	s.rounds()
	s.told("of a user who is there")
}

func testWanted(t *testing.T, open opener) {
	s := newStage(t, open, func(o *Options) { o.Wanted = []Kind{UserOffline} })
	s.user("ann", true)
	s.channel("news", true)
	ok(t, s.WatchDelivery(t.Context(), Delivery{User: "ann", Data: []byte("1"), After: time.Second}))
	equal(t, "did", s.rounds(), Report{Checked: 1})
	s.user("ann", false)
	s.pass(t, Grace)
	s.rounds()
	s.told("what is wanted", "user_offline ann")
	var none *Recorder
	ok(t, none.UsersChanged(t.Context(), "ann")[0])
	ok(t, none.ChannelsChanged(t.Context(), "ann")[0])
	ok(t, none.WatchDelivery(t.Context(), Delivery{}))
}

func testSweep(t *testing.T, open opener) {
	s := newStage(t, open, nil)
	s.user("ann", true)
	s.user("bob", true)
	s.channel("news", true)
	s.rounds()
	s.endpoint.taken()
	s.truth.set("u:ann", false)
	s.truth.set("c:news", false)
	did, err := s.SweepRound(t.Context())
	ok(t, err)
	equal(t, "found", did, Report{Checked: 2})
	s.truth.set("c:news", true) // it was only away
	s.rounds()
	s.told("within the grace")
	s.pass(t, Grace)
	s.rounds()
	s.told("behind it", "user_offline ann")
	did, err = s.SweepRound(t.Context())
	ok(t, err)
	equal(t, "found", did, Report{})
}

func testSweepInParts(t *testing.T, open opener) {
	s := newStage(t, open, nil)
	const users = 600 // more than a page, and more than Redis keeps in one piece
	for i := range users {
		entry := fmt.Sprintf("u:user-%d", i)
		s.truth.set(entry, true)
		ok(t, s.Changed(t.Context(), 3, entry, 0))
	}
	s.rounds()
	for i := range users {
		s.truth.set(fmt.Sprintf("u:user-%d", i), false)
	}
	for round := range 10 {
		did, err := s.SweepRound(t.Context())
		ok(t, err)
		if did.Checked > users*2/3 {
			t.Errorf("round %d looked at %d", round, did.Checked)
		}
	}
	s.pass(t, Grace)
	equal(t, "told", s.rounds().Told, users)
}

func testUndelivered(t *testing.T, open opener) {
	s := newStage(t, open, nil)
	watch := func(d Delivery) {
		t.Helper()
		d.After = 30 * time.Second
		ok(t, s.WatchDelivery(t.Context(), d))
	}
	watch(Delivery{User: "ann", Clients: []Place{{"phone", 1 << 52}, {"tab", 7}}, Data: []byte(`{"n":1}`)})
	watch(Delivery{User: "ann", Clients: []Place{{"tab", 7}, {"watch", 9}}, Data: []byte(`{"n":1}`)}) // the same push, again
	watch(Delivery{User: "bob", Clients: []Place{{"bobs", 8}, {"other", 9}}, Data: []byte(`{"n":2}`)})
	watch(Delivery{Clients: []Place{{"kiosk", 3}}, Data: []byte(`"three"`)})
	watch(Delivery{User: "cat", Data: []byte(`4`)})
	s.truth.ack("other", 9)
	s.truth.ack("kiosk", 2)
	s.rounds()
	s.told("early")
	s.pass(t, 30*time.Second)
	equal(t, "did", s.rounds(), Report{Checked: 4, Told: 3, Sent: 3})
	events := s.endpoint.taken()
	slices.SortFunc(events, func(a, b got) int { return strings.Compare(string(a.Data), string(b.Data)) })
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
	watch(Delivery{User: "ann", Clients: []Place{{"tab", 7}}, Data: []byte(`{"n":1}`)}) // much later again
	s.pass(t, 30*time.Second)
	s.rounds()
	s.told("the same event again")
	equal(t, "repeated", s.endpoint.again, 1)
	equal(t, "known", s.endpoint.ids[first], true)
}

func testTruthAway(t *testing.T, open opener) {
	s := newStage(t, open, nil)
	s.user("ann", true)
	ok(t, s.WatchDelivery(t.Context(), Delivery{User: "ann", Clients: []Place{{"phone", 1}}, Data: []byte("1"), After: time.Millisecond}))
	s.pass(t, time.Second)
	away := errors.New("away")
	s.truth.fail(away)
	_, err := s.DueRound(t.Context())
	fails(t, "a round", err, away)
	_, err = s.SweepRound(t.Context())
	ok(t, err) // nobody is told present
	s.truth.fail(nil)
	equal(t, "while it is claimed", s.rounds(), Report{})
	s.pass(t, hold)
	s.rounds()
	equal(t, "told", len(s.endpoint.taken()), 2)
	s.truth.fail(away)
	_, err = s.SweepRound(t.Context())
	fails(t, "a sweep", err, away)
}

func testMany(t *testing.T, open opener) {
	s := newStage(t, open, nil)
	const users = 6000 // more than a page in each shard
	var all sync.WaitGroup
	for i := range users {
		name := fmt.Sprintf("user-%d", i)
		s.truth.set("u:"+name, true)
		all.Go(func() {
			if err := s.UsersChanged(t.Context(), name)[0]; err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	equal(t, "did", s.rounds(), Report{Checked: users, Told: users, Sent: users})
	equal(t, "taken", len(s.endpoint.taken()), users)
	if n := s.endpoint.deliveries(); n < users/100 || n > users/100+Shards {
		t.Errorf("%d deliveries of 100 at most", n)
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
		t.Error("the metrics are registered twice")
	}
	if (StoreOptions{Prefix: "{x}"}).Validate() == nil {
		t.Error("a brace is allowed in the prefix")
	}
}

type noSender struct{}

func (noSender) Send(context.Context, [][]byte) error { return nil }
func (noSender) Timeout() time.Duration               { return time.Second }

func TestBadDeliveries(t *testing.T) {
	r := NewRecorder(NewMemory(StoreOptions{}), nil)
	for what, d := range map[string]Delivery{
		"time": {User: "ann", Data: []byte("1")},
		"user": {Data: []byte("1"), After: time.Second},
		"JSON": {User: "ann", Data: []byte("{"), After: time.Second},
	} {
		if err := r.WatchDelivery(t.Context(), d); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
