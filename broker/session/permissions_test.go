package session_test

import (
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

// verifying returns an Access.Verify for tokens of the form user|channel=actions,…
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

// newWithToken returns a harness whose client has connected with a token.
func newWithToken(t *testing.T, token string, o session.Options) *harness {
	h := newUnconnected(t, o, unwrapped, connect("", token))
	h.received()
	return h
}

// ruled returns an Access.Namespaces with the given rules.
func ruled(t *testing.T, rules ...namespace.Rule) func() *namespace.Set {
	t.Helper()
	set, err := namespace.New(rules)
	if err != nil {
		t.Fatal(err)
	}
	return func() *namespace.Set { return set }
}

func TestNamespacesDecide(t *testing.T) {
	refused := map[string]int{}
	h := newWithToken(t, "alice|chat:1=pub history,team:*=sub", session.Options{
		Access: session.Access{Verify: verifying(t), Namespaces: ruled(t,
			namespace.Rule{Name: "chat:*", Subscribe: namespace.Users, Publish: namespace.Grant, History: namespace.Grant},
			namespace.Rule{Name: "team:*", Subscribe: namespace.Grant},
			namespace.Rule{Name: "inbox:{user}", Subscribe: namespace.Named},
		)},
		Metrics: session.Metrics{Refused: func(what string) { refused[what]++ }},
	})
	h.expect("subscribed", "", "", `{"type":"subscribe","channel":"chat:2"}`)
	h.expect("subscribed", "", "", `{"type":"subscribe","channel":"team:a"}`)
	h.expect("subscribed", "", "", `{"type":"subscribe","channel":"inbox:alice"}`)
	h.expect("published", "", "", `{"type":"publish","channel":"chat:1","data":1}`)
	h.expect("history", "", "", `{"type":"history","channel":"chat:1"}`)
	for _, c := range []struct{ message, text string }{
		{`{"type":"subscribe","channel":"inbox:bob"}`, "channel inbox:bob: not allowed to subscribe: namespace inbox:{user}: subscribe is open to named, which is bob"},
		{`{"type":"subscribe","channel":"news"}`, "no namespace fits the name"},
		{`{"type":"subscribe","channel":"team:"}`, "the prefix"},
		{`{"type":"subscribe","channel":"team:*"}`, "a name with * is a pattern"},
		{`{"type":"publish","channel":"chat:2","data":1}`, "not allowed to publish: namespace chat:*: publish is open to grant, and no grant"},
		{`{"type":"publish","channel":"inbox:alice","data":1}`, "not allowed to publish"},
		{`{"type":"history","channel":"chat:2"}`, "not allowed to see its history"},
	} {
		h.expect("error", "forbidden", c.text, "%s", c.message)
	}
	if refused["subscribe"] != 4 || refused["publish"] != 2 || refused["history"] != 1 {
		t.Errorf("counted %v", refused)
	}
}

func TestNamespaceLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, session.Options{Limits: session.Limits{Message: 1000}, Access: session.Access{Namespaces: ruled(t,
			namespace.Rule{Name: "small:*", Publish: namespace.Anyone, Message: 10},
			namespace.Rule{Name: "large:*", Publish: namespace.Anyone, Message: 10_000},
			namespace.Rule{Name: "slow:*", Publish: namespace.Anyone, PublishRate: 2},
			namespace.Rule{Name: "slower:*", Publish: namespace.Anyone, PublishRate: 0.1},
		)}})
		h.expect("error", "too_large", "at most 10", `{"type":"publish","channel":"small:1","data":"12345678901"}`)
		h.expect("published", "", "", `{"type":"publish","channel":"small:1","data":"12345678"}`)
		h.expect("error", "too_large", "at most 1000", `{"type":"publish","channel":"large:1","data":"%s"}`, strings.Repeat("x", 2000))
		for range 2 {
			h.expect("published", "", "", `{"type":"publish","channel":"slow:1","data":1}`)
		}
		h.expect("error", "rate_limited", "more than 2 messages a second", `{"type":"publish","channel":"slow:2","data":1}`)
		h.expect("published", "", "", `{"type":"publish","channel":"slower:1","data":1}`)
		h.expect("error", "rate_limited", "0.1", `{"type":"publish","channel":"slower:1","data":1}`)
		<-time.After(500 * time.Millisecond)
		h.expect("published", "", "", `{"type":"publish","channel":"slow:2","data":1}`)
		h.expect("error", "rate_limited", "", `{"type":"publish","channel":"slow:2","data":1}`)
		<-time.After(10 * time.Second)
		h.expect("published", "", "", `{"type":"publish","channel":"slower:1","data":1}`)
		// A message that is refused for its size takes none of the rate.
		h.expect("error", "bad_request", "", `{"type":"publish","channel":"slow:1"}`)
	})
}

// TestRefreshEndsSubscriptions has a token that grants less than the one before.
func TestRefreshEndsSubscriptions(t *testing.T) {
	h := newWithToken(t, "alice|a:*=sub,b:*=sub", session.Options{
		Access: session.Access{Verify: verifying(t), Namespaces: ruled(t,
			namespace.Rule{Name: "a:*", Subscribe: namespace.Grant},
			namespace.Rule{Name: "b:*", Subscribe: namespace.Grant},
		)},
	})
	for _, channel := range []string{"a:1", "b:1", "a:2", "b:2"} {
		h.expect("subscribed", "", "", `{"type":"subscribe","channel":%q}`, channel)
	}
	h.expect("error", "unauthorized", "missing", `{"type":"refresh"}`)
	h.expect("error", "forbidden", "of user bob", `{"type":"refresh","token":"bob|a:*=sub"}`)
	h.expect("error", "unauthorized", "bad", `{"type":"refresh","token":"bad"}`)
	h.expect("refreshed", "", "", `{"type":"refresh","token":"alice|a:*=sub,b:*=sub"}`)

	h.send(`{"type":"refresh","token":"alice|a:*=sub"}`)
	events := h.received()
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
	h.expect("error", "forbidden", "", `{"type":"subscribe","channel":"b:1"}`)
	h.expect("subscribed", "", "", `{"type":"subscribe","channel":"a:1"}`) // which it still has
}

func TestRecheckEndsSubscriptions(t *testing.T) {
	var set atomic.Pointer[namespace.Set]
	set.Store(ruled(t, namespace.Rule{Name: "*", Subscribe: namespace.Anyone})())
	h := newHarness(t, session.Options{Access: session.Access{Namespaces: set.Load}})
	for _, channel := range []string{"a:1", "b:1"} {
		h.expect("subscribed", "", "", `{"type":"subscribe","channel":%q}`, channel)
	}
	set.Store(ruled(t, namespace.Rule{Name: "a:*", Subscribe: namespace.Anyone})())
	h.Recheck()
	if events := h.received(); len(events) != 1 || events[0].Channel != "b:1" || events[0].Type != "unsubscribed" {
		t.Errorf("got %+v", events)
	}
	h.wantClosed("")
}

func TestAnonymous(t *testing.T) {
	rules := ruled(t, namespace.Rule{Name: "public:*", Subscribe: namespace.Anyone}, namespace.Rule{Name: "*", Subscribe: namespace.Users})
	h := newUnconnected(t, session.Options{Access: session.Access{Verify: verifying(t), Anonymous: true, Namespaces: rules}}, unwrapped,
		connect("phone", ""))
	h.received()
	h.expect("subscribed", "", "", `{"type":"subscribe","channel":"public:1"}`)
	h.expect("error", "forbidden", "the client has no user", `{"type":"subscribe","channel":"news"}`)
	h.expect("error", "unauthorized", "missing", `{"type":"refresh"}`)
	h.expect("error", "forbidden", "", `{"type":"refresh","token":"alice"}`)

	for message, why := range map[string]string{
		`{"type":"connect","client":"c","user":"alice"}`: "a client without a token has no user",
		`{"type":"connect","client":"c","token":"bad"}`:  "token: bad",
	} {
		h := newUnconnected(t, session.Options{Access: session.Access{Verify: verifying(t), Anonymous: true}}, unwrapped, nil)
		h.expect("error", "unauthorized", why, "%s", message)
		h.wantClosed(wire.CloseUnauthorized)
	}
	tokenOnly := newUnconnected(t, session.Options{Access: session.Access{Verify: verifying(t)}}, unwrapped, nil)
	tokenOnly.expect("error", "unauthorized", "token: missing", `{"type":"connect","client":"c"}`)
	tokenOnly.wantClosed(wire.CloseUnauthorized)
}

// TestResumeWithoutHistory checks that a client without the history right can resume after a short
// break, but not read older messages.
func TestResumeWithoutHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		<-time.After(25 * 365 * 24 * time.Hour) // a synctest bubble begins in 2000, but ids count from 2020
		for name, mayRead := range map[string]bool{"with": true, "without": false} {
			rule := namespace.Rule{Name: "*", Subscribe: namespace.Anyone, Publish: namespace.Anyone}
			if mayRead {
				rule.History = namespace.Anyone
			}
			h := newHarness(t, session.Options{Access: session.Access{Namespaces: ruled(t, rule)}})
			var ids []int64
			for range 3 { // a message every four minutes
				e := h.expect("published", "", "", `{"type":"publish","channel":"c","data":1}`)
				ids = append(ids, *e.ID)
				<-time.After(4 * time.Minute)
			}
			for _, c := range []struct {
				after     int64
				recovered bool // the answer without the history right
				messages  int  // the messages after it, without the history right
			}{
				{ids[2], true, 0}, {ids[1], true, 1}, {ids[0], false, 0}, {0, false, 0}, {queue.IDAt(time.Now()) + 1<<40, false, 0},
			} {
				h.send(`{"type":"subscribe","channel":"c","after":%d}`, c.after)
				events := h.received()
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
					want = len(events) - 1 // the cursor is after the last message: what follows is not tested here
				}
				if events[0].Type != "subscribed" || *events[0].Recovered != c.recovered || len(events)-1 != want {
					t.Errorf("%s, after %d: %d messages, %+v, want %v and %d", name, c.after, len(events)-1, events[0], c.recovered, want)
				}
				h.send(`{"type":"unsubscribe","channel":"c"}`)
				h.received()
			}
		}
	})
}
