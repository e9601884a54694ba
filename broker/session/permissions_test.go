package session_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/broker/namespace"
	"switchboard/broker/session"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// verifying takes tokens of the form user:grant=actions,…
func verifying(t *testing.T) func(string) (session.Identity, error) {
	return func(token string) (session.Identity, error) {
		user, list, _ := strings.Cut(token, "|")
		if user == "bad" {
			return session.Identity{}, wire.Errorf(wire.Unauthorized, "token: bad")
		}
		id := session.Identity{User: user}
		for pair := range strings.SplitSeq(list, ",") {
			if name, actions, ok := strings.Cut(pair, "="); ok {
				if err := id.Grants.Add(name, actions); err != nil {
					t.Error(err)
				}
			}
		}
		return id, nil
	}
}

// bearing is a desk whose client connects with a token.
func bearing(t *testing.T, token string, o session.Options) *desk {
	d := greeted(t, o, plain, connect("", token))
	d.hears()
	return d
}

func ruled(t *testing.T, rules ...namespace.Rule) func() *namespace.Set {
	t.Helper()
	set, err := namespace.New(rules)
	if err != nil {
		t.Fatal(err)
	}
	return func() *namespace.Set { return set }
}

// hears is what was written since the last call.
func (d *desk) hears() (events []wire.Event) {
	d.do(func() { events, d.sock.written = d.sock.written, nil })
	return events
}

// answers checks the one event that a message leads to; code is "" for an answer that is no error.
func (d *desk) answers(typ, code, about, say string, args ...any) wire.Event {
	d.t.Helper()
	d.say(say, args...)
	events := d.hears()
	if len(events) == 0 || events[0].Type != typ || events[0].Code != code || !strings.Contains(events[0].Message, about) {
		d.t.Fatalf("%s: %+v, want %s %s %q", fmt.Sprintf(say, args...), events, typ, code, about)
	}
	return events[0]
}

func TestNamespacesDecide(t *testing.T) {
	refused := map[string]int{}
	d := bearing(t, "alice|chat:1=pub history,team:*=sub", session.Options{
		Access: session.Access{Verify: verifying(t), Namespaces: ruled(t,
			namespace.Rule{Name: "chat:*", Subscribe: namespace.Users, Publish: namespace.Grant, History: namespace.Grant},
			namespace.Rule{Name: "team:*", Subscribe: namespace.Grant},
			namespace.Rule{Name: "inbox:{user}", Subscribe: namespace.Named},
		)},
		Metrics: session.Metrics{Refused: func(what string) { refused[what]++ }},
	})
	d.answers("subscribed", "", "", `{"type":"subscribe","channel":"chat:2"}`)
	d.answers("subscribed", "", "", `{"type":"subscribe","channel":"team:a"}`)
	d.answers("subscribed", "", "", `{"type":"subscribe","channel":"inbox:alice"}`)
	d.answers("published", "", "", `{"type":"publish","channel":"chat:1","data":1}`)
	d.answers("history", "", "", `{"type":"history","channel":"chat:1"}`)
	for _, c := range []struct{ say, about string }{
		{`{"type":"subscribe","channel":"inbox:bob"}`, "channel inbox:bob: not allowed to subscribe: namespace inbox:{user}: subscribe is open to named, which is bob"},
		{`{"type":"subscribe","channel":"news"}`, "no namespace fits the name"},
		{`{"type":"subscribe","channel":"team:"}`, "nothing follows the prefix"},
		{`{"type":"subscribe","channel":"team:*"}`, "a name with * is a pattern"},
		{`{"type":"publish","channel":"chat:2","data":1}`, "not allowed to publish: namespace chat:*: publish is open to grant, and no grant"},
		{`{"type":"publish","channel":"inbox:alice","data":1}`, "open to the backend only"},
		{`{"type":"history","channel":"chat:2"}`, "not allowed to see its history"},
	} {
		d.answers("error", "forbidden", c.about, "%s", c.say)
	}
	if refused["subscribe"] != 4 || refused["publish"] != 2 || refused["history"] != 1 {
		t.Errorf("counted %v", refused)
	}
}

func TestSizeAndRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, session.Options{Limits: session.Limits{Message: 1000}, Access: session.Access{Namespaces: ruled(t,
			namespace.Rule{Name: "small:*", Publish: namespace.Anyone, Message: 10},
			namespace.Rule{Name: "large:*", Publish: namespace.Anyone, Message: 10_000},
			namespace.Rule{Name: "slow:*", Publish: namespace.Anyone, PublishRate: 2},
			namespace.Rule{Name: "slower:*", Publish: namespace.Anyone, PublishRate: 0.1},
		)}})
		d.answers("error", "too_large", "at most 10", `{"type":"publish","channel":"small:1","data":"12345678901"}`)
		d.answers("published", "", "", `{"type":"publish","channel":"small:1","data":"12345678"}`)
		d.answers("error", "too_large", "at most 1000", `{"type":"publish","channel":"large:1","data":"%s"}`, strings.Repeat("x", 2000))
		for range 2 {
			d.answers("published", "", "", `{"type":"publish","channel":"slow:1","data":1}`)
		}
		d.answers("error", "rate_limited", "more than 2 messages a second", `{"type":"publish","channel":"slow:2","data":1}`)
		d.answers("published", "", "", `{"type":"publish","channel":"slower:1","data":1}`)
		d.answers("error", "rate_limited", "0.1", `{"type":"publish","channel":"slower:1","data":1}`)
		<-time.After(500 * time.Millisecond)
		d.answers("published", "", "", `{"type":"publish","channel":"slow:2","data":1}`)
		d.answers("error", "rate_limited", "", `{"type":"publish","channel":"slow:2","data":1}`)
		<-time.After(10 * time.Second)
		d.answers("published", "", "", `{"type":"publish","channel":"slower:1","data":1}`)
		// A message that is refused for its size takes none of the rate.
		d.answers("error", "bad_request", "", `{"type":"publish","channel":"slow:1"}`)
	})
}

// TestLessByRefresh has a token that grants less than the one before.
func TestLessByRefresh(t *testing.T) {
	d := bearing(t, "alice|a:*=sub,b:*=sub", session.Options{
		Access: session.Access{Verify: verifying(t), Namespaces: ruled(t,
			namespace.Rule{Name: "a:*", Subscribe: namespace.Grant},
			namespace.Rule{Name: "b:*", Subscribe: namespace.Grant},
		)},
	})
	for _, channel := range []string{"a:1", "b:1", "a:2", "b:2"} {
		d.answers("subscribed", "", "", `{"type":"subscribe","channel":%q}`, channel)
	}
	d.answers("error", "unauthorized", "missing", `{"type":"refresh"}`)
	d.answers("error", "forbidden", "of user bob", `{"type":"refresh","token":"bob|a:*=sub"}`)
	d.answers("error", "unauthorized", "bad", `{"type":"refresh","token":"bad"}`)
	d.answers("refreshed", "", "", `{"type":"refresh","token":"alice|a:*=sub,b:*=sub"}`)

	d.say(`{"type":"refresh","token":"alice|a:*=sub"}`)
	events := d.hears()
	gone := map[string]bool{}
	for _, e := range events[1:] {
		if e.Type != "unsubscribed" || e.Code != "forbidden" || e.Ref.Set || !strings.Contains(e.Message, "no grant of the token fits") {
			t.Errorf("got %+v", e)
		}
		gone[e.Channel] = true
	}
	if events[0].Type != "refreshed" || len(gone) != 2 || !gone["b:1"] || !gone["b:2"] {
		t.Errorf("got %+v", events)
	}
	d.answers("error", "forbidden", "", `{"type":"subscribe","channel":"b:1"}`)
	d.answers("subscribed", "", "", `{"type":"subscribe","channel":"a:1"}`) // it goes on
}

func TestLessByReload(t *testing.T) {
	var set atomic.Pointer[namespace.Set]
	set.Store(ruled(t, namespace.Rule{Name: "*", Subscribe: namespace.Anyone})())
	d := newDesk(t, session.Options{Access: session.Access{Namespaces: set.Load}})
	for _, channel := range []string{"a:1", "b:1"} {
		d.answers("subscribed", "", "", `{"type":"subscribe","channel":%q}`, channel)
	}
	set.Store(ruled(t, namespace.Rule{Name: "a:*", Subscribe: namespace.Anyone})())
	d.Recheck()
	if events := d.hears(); len(events) != 1 || events[0].Channel != "b:1" || events[0].Type != "unsubscribed" {
		t.Errorf("got %+v", events)
	}
	d.want("")
}

func TestAnonymous(t *testing.T) {
	rules := ruled(t, namespace.Rule{Name: "public:*", Subscribe: namespace.Anyone}, namespace.Rule{Name: "*", Subscribe: namespace.Users})
	d := greeted(t, session.Options{Access: session.Access{Verify: verifying(t), Anonymous: true, Namespaces: rules}}, plain, connect("phone", ""))
	d.hears()
	d.answers("subscribed", "", "", `{"type":"subscribe","channel":"public:1"}`)
	d.answers("error", "forbidden", "the client has no user", `{"type":"subscribe","channel":"news"}`)
	d.answers("error", "unauthorized", "missing", `{"type":"refresh"}`)
	d.answers("error", "forbidden", "", `{"type":"refresh","token":"alice"}`)

	for say, why := range map[string]string{
		`{"type":"connect","client":"c","user":"alice"}`: "without one nobody is a user",
		`{"type":"connect","client":"c","token":"bad"}`:  "token: bad",
	} {
		d := greeted(t, session.Options{Access: session.Access{Verify: verifying(t), Anonymous: true}}, plain, nil)
		d.answers("error", "unauthorized", why, "%s", say)
		d.want(wire.CloseUnauthorized)
	}
	closed := greeted(t, session.Options{Access: session.Access{Verify: verifying(t)}}, plain, nil)
	closed.answers("error", "unauthorized", "token: missing", `{"type":"connect","client":"c"}`)
	closed.want(wire.CloseUnauthorized)
}

// TestResumeWithoutHistory: who may not see the history can come back after a break, and not look further back.
func TestResumeWithoutHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		<-time.After(25 * 365 * 24 * time.Hour) // a bubble begins in 2000, and ids in 2020
		for name, mayRead := range map[string]bool{"with": true, "without": false} {
			rule := namespace.Rule{Name: "*", Subscribe: namespace.Anyone, Publish: namespace.Anyone}
			if mayRead {
				rule.History = namespace.Anyone
			}
			d := newDesk(t, session.Options{
				Access: session.Access{Namespaces: ruled(t, rule)}, Timing: session.Timing{},
			})
			var ids []int64
			for range 3 { // a message in four minutes
				e := d.answers("published", "", "", `{"type":"publish","channel":"c","data":1}`)
				ids = append(ids, *e.ID)
				<-time.After(4 * time.Minute)
			}
			for _, c := range []struct {
				after     int64
				recovered bool // without the right
				messages  int
			}{
				{ids[2], true, 0}, {ids[1], true, 1}, {ids[0], false, 0}, {0, false, 0}, {queue.IDAt(time.Now()) + 1<<40, false, 0},
			} {
				d.say(`{"type":"subscribe","channel":"c","after":%d}`, c.after)
				events := d.hears()
				want := c.messages
				if mayRead && c.after <= ids[2] {
					c.recovered = true
					want = 0
					for _, id := range ids {
						if id > c.after {
							want++
						}
					}
				}
				if mayRead && c.after > ids[2] {
					want = len(events) - 1 // set back: not what is looked at here
				}
				if events[0].Type != "subscribed" || *events[0].Recovered != c.recovered || len(events)-1 != want {
					t.Errorf("%s, after %d: %d messages, %+v, want %v and %d", name, c.after, len(events)-1, events[0], c.recovered, want)
				}
				d.say(`{"type":"unsubscribe","channel":"c"}`)
				d.hears()
			}
		}
	})
}
