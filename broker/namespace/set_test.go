package namespace

import (
	"strings"
	"testing"
)

// allowedActions returns the actions that the subject may do, separated by spaces.
func allowedActions(s *Set, subject Subject, channel string) string {
	var actions []string
	for _, action := range Actions {
		ok, _ := s.Decide(subject, action, channel)
		if ok != s.Allows(subject, action, channel) {
			actions = append(actions, "contradictory")
		}
		if ok {
			actions = append(actions, action.String())
		}
	}
	return strings.Join(actions, " ")
}

func mustGrant(tb testing.TB, pairs ...string) Grants {
	tb.Helper()
	var g Grants
	for i := 0; i < len(pairs); i += 2 {
		if err := g.Add(pairs[i], pairs[i+1]); err != nil {
			tb.Fatal(err)
		}
	}
	return g
}

func mustSet(tb testing.TB, rules ...Rule) *Set {
	tb.Helper()
	s, err := New(rules)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

const everything = "subscribe publish presence history state durable"

// TestEveryAccess checks each Access with each action.
func TestEveryAccess(t *testing.T) {
	subjects := map[string]Subject{
		"without a user":    {},
		"bob":               {User: "bob"},
		"alice":             {User: "alice"},
		"alice with grants": {User: "alice", Grants: mustGrant(t, "room:*", "*")},
		"the backend":       {Backend: true},
	}
	for _, c := range []struct {
		access  Access
		allowed string // besides the backend
	}{
		{BackendOnly, ""},
		{Anyone, "without a user, bob, alice, alice with grants"},
		{Users, "bob, alice, alice with grants"},
		{Named, "alice, alice with grants"},
		{Grant, "alice with grants"},
		{Named | Grant, "alice, alice with grants"},
		{Users | Grant, "bob, alice, alice with grants"},
	} {
		for _, action := range Actions {
			r := Rule{Name: "room:{user}"}
			switch action {
			case Subscribe:
				r.Subscribe = c.access
			case Publish:
				r.Publish = c.access
			case Presence:
				r.Presence = c.access
			case History:
				r.History = c.access
			case State:
				r.State = c.access
			case Durable:
				r.Durable = c.access
			}
			s := mustSet(t, r)
			for name, subject := range subjects {
				want := ""
				if name == "the backend" {
					want = everything
				} else if strings.Contains(", "+c.allowed+",", ", "+name+",") {
					want = action.String()
				}
				if got := allowedActions(s, subject, "room:alice"); got != want {
					t.Errorf("%s for %s: %s may %q, want %q", action, c.access, name, got, want)
				}
			}
		}
	}
}

func TestLongestPrefix(t *testing.T) {
	s := mustSet(t,
		Rule{Name: "*", Subscribe: Anyone},
		Rule{Name: "chat:*", Publish: Anyone},
		Rule{Name: "chat:eu:*", Presence: Anyone},
		Rule{Name: "chat:eu:staff", History: Anyone},
		Rule{Name: "chat", Subscribe: Anyone, Publish: Anyone},
		Rule{Name: "inbox:{user}", Subscribe: Named},
	)
	for channel, want := range map[string]string{
		"news":                "subscribe",
		"chatroom:1":          "subscribe",
		"chat":                "subscribe publish",
		"chat:1":              "publish",
		"chat:1:2:3":          "publish",
		"chat::":              "publish",
		"chat:eu":             "publish",
		"chat:eu:1":           "presence",
		"chat:eu:staff":       "history",
		"chat:eu:staff:1":     "presence",
		"chat:eu:Staff":       "presence",
		"Chat:1":              "subscribe",
		":":                   "subscribe",
		"inbox:alice":         "subscribe",
		"inbox:alice:x":       "",
		"inbox:Alice":         "",
		"inbox:al":            "",
		"inbox::alice":        "",
		"a:b:chat:1":          "subscribe",
		"chat:eu:staff\u200b": "presence", // a zero width space is no white space: it is just another name
	} {
		if got := allowedActions(s, Subject{User: "alice"}, channel); got != want {
			t.Errorf("%s: %q, want %q", channel, got, want)
		}
	}
}

func TestNoNamespaceMatches(t *testing.T) {
	for name, s := range map[string]*Set{"some": mustSet(t, Rule{Name: "chat:*", Subscribe: Anyone}), "none at all": mustSet(t)} {
		for _, subject := range []Subject{{}, {User: "alice", Grants: mustGrant(t, "*", "*")}, {Backend: true}} {
			if got := allowedActions(s, subject, "news"); got != "" {
				t.Errorf("%s: %+v may %q on a closed channel", name, subject, got)
			}
		}
	}
}

func TestDefaults(t *testing.T) {
	alice, anonymous, backend := Subject{User: "alice"}, Subject{}, Subject{Backend: true}
	for _, c := range []struct {
		name    string
		set     *Set
		subject Subject
		want    string
	}{
		{"open", Open(), anonymous, everything},
		{"open", Open(), alice, everything},
		{"keys", Keyed(false), alice, "subscribe presence history state"},
		{"keys, a grant", Keyed(false), Subject{User: "alice", Grants: mustGrant(t, "*", "*")}, "subscribe presence history state"},
		{"keys, no user", Keyed(false), anonymous, ""},
		{"keys, clients publish", Keyed(true), alice, "subscribe publish presence history state"},
		{"keys, clients publish, no user", Keyed(true), anonymous, ""},
		{"keys, backend", Keyed(false), backend, everything},
	} {
		if got := allowedActions(c.set, c.subject, "news"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if got := allowedActions(c.set, c.subject, "$all"); got != "" {
			t.Errorf("%s: %q on a system channel", c.name, got)
		}
	}
}

// TestNameTricks checks that alice may subscribe to chat:1, to inbox:alice and to all of team:*,
// and to no name that looks similar.
func TestNameTricks(t *testing.T) {
	s := mustSet(t,
		Rule{Name: "chat:*", Subscribe: Grant},
		Rule{Name: "team:*", Subscribe: Grant},
		Rule{Name: "inbox:{user}", Subscribe: Named},
		Rule{Name: "*", Publish: Anyone},
	)
	alice := Subject{User: "alice", Grants: mustGrant(t, "chat:1", "sub", "team:*", "sub")}
	for _, channel := range []string{"chat:1", "inbox:alice", "team:a", "team:a:b", "team:..", "team::"} {
		if ok, why := s.Decide(alice, Subscribe, channel); !ok {
			t.Errorf("%s: %s", channel, why)
		}
	}
	for name, channel := range map[string]string{
		"Cyrillic a":            "inbox:\u0430lice",
		"full width":            "inbox:ａlice",
		"combining mark":        "inbox:alice\u0301",
		"zero width joiner":     "inbox:al\u200dice",
		"right to left mark":    "inbox:alice\u200f",
		"another case":          "inbox:ALICE",
		"case in the prefix":    "Chat:1",
		"dots":                  "chat:1/../2",
		"dots as a name":        "chat:..",
		"a path":                "chat:2/../1",
		"percent":               "chat:%31",
		"longer":                "chat:1:2",
		"shorter":               "chat:",
		"the prefix alone":      "team:",
		"no colon":              "team",
		"no user":               "inbox:",
		"a colon after":         "inbox:alice:",
		"a colon after a grant": "chat:1:",
		"a pattern":             "team:*",
		"all":                   "*",
		"a star inside":         "team:a*b",
		"the placeholder":       "inbox:{user}",
		"braces":                "chat:{1}",
		"a NUL":                 "chat:1\x00",
		"a line":                "chat:1\n",
		"a space":               "chat:1 ",
		"no break space":        "chat:\u00a01",
		"line separator":        "chat:1\u2028",
		"not UTF-8":             "chat:1\xff",
		"overlong":              "chat:" + strings.Repeat("1", 200),
		"empty":                 "",
		"a system channel":      "$all",
		"after a dollar":        "$team:a",
	} {
		if ok, why := s.Decide(alice, Subscribe, channel); ok || why == "" {
			t.Errorf("%s: %q is open: %s", name, channel, why)
		}
	}
	for _, user := range []string{"", "*", "{user}", "alice:x", "alice*", ":", ".."} {
		for _, channel := range []string{"inbox:", "inbox:alice", "inbox:*"} {
			if ok, why := s.Decide(Subject{User: user}, Subscribe, channel); ok {
				t.Errorf("%q may read %s: %s", user, channel, why)
			}
		}
	}
}

func TestWhy(t *testing.T) {
	s := mustSet(t, Rule{Name: "chat:*", Subscribe: Users, Publish: Grant}, Rule{Name: "inbox:{user}", Subscribe: Named | Grant, History: Named, NoPresence: true})
	for _, c := range []struct {
		subject Subject
		action  Action
		channel string
		want    string
	}{
		{Subject{User: "bob"}, Subscribe, "chat:1", "namespace chat:*: subscribe is open to users"},
		{Subject{}, Subscribe, "chat:1", "namespace chat:*: subscribe is open to users, and the client has no user"},
		{Subject{User: "bob"}, Publish, "chat:1", "namespace chat:*: publish is open to grant, and no grant of the token fits"},
		{Subject{User: "bob"}, Presence, "chat:1", "namespace chat:*: presence is open to the backend only"},
		{Subject{User: "bob"}, Subscribe, "inbox:bob", "namespace inbox:{user}: subscribe is open to named"},
		{Subject{User: "bob"}, Subscribe, "inbox:al", "namespace inbox:{user}: subscribe is open to named or grant, and no grant of the token fits"},
		{Subject{User: "bob"}, History, "inbox:al", "namespace inbox:{user}: history is open to named, which is al"},
		{Subject{Backend: true}, Presence, "inbox:al", "namespace inbox:{user}: presence is off"},
		{Subject{Backend: true}, Publish, "chat:1", "namespace chat:*: the backend may"},
		{Subject{}, Subscribe, "news", "no namespace fits the name, so the channel is closed"},
		{Subject{}, Subscribe, "a b", `channel: character ' ' at byte 1 of the name is not allowed`},
	} {
		if _, why := s.Decide(c.subject, c.action, c.channel); why != c.want {
			t.Errorf("%s by %q of %s: %q, want %q", c.action, c.subject.User, c.channel, why, c.want)
		}
	}
}

func TestFor(t *testing.T) {
	s := mustSet(t, Rule{Name: "chat:*", Message: 7, PublishRate: 2.5}, Rule{Name: "slow:*", PublishRate: 0.1})
	if r := s.For("chat:1"); r == nil || r.Message != 7 || r.Burst() != 3 {
		t.Errorf("got %+v", r)
	}
	if r := s.For("slow:1"); r == nil || r.Burst() != 1 {
		t.Errorf("got %+v", r)
	}
	if s.For("news") != nil || !s.Configured() || Open().Configured() || Keyed(true).For("x") == nil {
		t.Error("a closed channel has a rule, or a default has none")
	}
}

func BenchmarkDecide(b *testing.B) {
	s := mustSet(b, Rule{Name: "chat:*", Subscribe: Users}, Rule{Name: "inbox:{user}", Subscribe: Named})
	for b.Loop() {
		if !s.Allows(Subject{User: "alice"}, Subscribe, "inbox:alice") {
			b.Fatal("alice may not subscribe to her own inbox")
		}
	}
}
