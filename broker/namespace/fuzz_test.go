package namespace

import (
	"strings"
	"testing"
)

// FuzzDecide compares Decide with the rules, written out as string comparisons.
func FuzzDecide(f *testing.F) {
	for _, seed := range [][2]string{
		{"alice", "inbox:alice"}, {"", "inbox:"}, {"alice", "chat:1"}, {"alice", "chat:"}, {"alice", "chat:eu:1"},
		{"a:b", "inbox:a:b"}, {"*", "inbox:*"}, {"{user}", "inbox:{user}"}, {"alice", "$all"}, {"alice", "inbox:\u0430lice"},
		{"..", "chat:.."}, {"alice", "news"}, {"alice", "inbox:alice:"}, {"\xff", "inbox:\xff"}, {"", "chat:eu:1"},
	} {
		f.Add(seed[0], seed[1])
	}
	s := mustSet(f,
		Rule{Name: "inbox:{user}", Subscribe: Named},
		Rule{Name: "chat:*", Subscribe: Users, Publish: Grant},
		Rule{Name: "chat:eu:*", Subscribe: Grant},
		Rule{Name: "news", Subscribe: Anyone},
	)
	grants := mustGrant(f, "chat:eu:*", "sub", "chat:1", "pub")
	f.Fuzz(func(t *testing.T, user, channel string) {
		eu := strings.HasPrefix(channel, "chat:eu:") && channel != "chat:eu:"
		chat := strings.HasPrefix(channel, "chat:") && channel != "chat:" && !strings.HasPrefix(channel, "chat:eu:")
		may := !strings.ContainsAny(channel, "*{} \n\x00") &&
			(channel == "news" || user != "" && (channel == "inbox:"+user || eu || chat))
		got, why := s.Decide(Subject{User: user, Grants: grants}, Subscribe, channel)
		if got && !may || why == "" {
			t.Fatalf("%q may subscribe to %q: %s", user, channel, why)
		}
		if ok, _ := s.Decide(Subject{User: user, Grants: grants}, Publish, channel); ok && channel != "chat:1" {
			t.Fatalf("%q may publish to %q", user, channel)
		}
		if ok, _ := s.Decide(Subject{}, Subscribe, channel); ok && channel != "news" {
			t.Fatalf("without a user %q is open", channel)
		}
	})
}

// FuzzNew makes sets from any names. A set that New accepts must not panic, and must not open one
// user's channel to another.
func FuzzNew(f *testing.F) {
	for _, seed := range []string{"chat:*", "inbox:{user}", "*", "news", "a:{user}:*", "{user}", "::{user}", "$x:*"} {
		f.Add(seed, "chat:1")
	}
	f.Fuzz(func(t *testing.T, name, channel string) {
		s, err := New([]Rule{{Name: name, Subscribe: Named}})
		if err != nil {
			return
		}
		rest, _ := strings.CutSuffix(name, "{user}")
		if ok, why := s.Decide(Subject{User: "alice"}, Subscribe, channel); ok && channel != rest+"alice" {
			t.Fatalf("%q opens %q to alice: %s", name, channel, why)
		}
	})
}
