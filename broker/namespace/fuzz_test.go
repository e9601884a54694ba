package namespace

import (
	"strings"
	"testing"

	"switchboard/internal/state"
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

// FuzzFieldPattern checks that a pattern that is accepted accounts for every byte of the names that
// fit it, that placeholders do not cross slashes, and that {user} opens no field to another user.
func FuzzFieldPattern(f *testing.F) {
	for _, seed := range [][3]string{
		{"member/{user}", "member/amy", "amy"}, {"p/{n}/*", "p/7/hat/x", ""}, {"seat/*", "seat/", "a"}, {"{user}", "a%2Fb", "a/b"},
		{"{n}/{user}", "1/a", "a"}, {"*", "$x", "x"}, {"x{n}", "x/", "{n}"}, {"a/{user}/b", "a//b", ""}, {"a/{n}*", "a/1", "*"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, pattern, name, user string) {
		s, err := New([]Rule{{Name: "r", Fields: []FieldRule{{Pattern: pattern, Write: Users}}}})
		if err != nil {
			return
		}
		p := &s.For("r").fields[0].pattern
		if p.compare(p) != 0 {
			t.Fatalf("%q differs from itself", pattern)
		}
		m := p.match(name)
		rest, open := strings.CutSuffix(pattern, "*")
		if m.fits {
			if filled := p.fill(m); filled != name && !(open && strings.HasPrefix(name, filled) && len(name) > len(filled)) {
				t.Fatalf("%q fits %q as %q", name, pattern, filled)
			}
			if strings.Contains(m.user+m.part, "/") {
				t.Fatalf("%q in %q: a placeholder has a slash: %+v", name, pattern, m)
			}
		} else if !strings.Contains(pattern, "{") && (name == pattern && !open || open && strings.HasPrefix(name, rest) && len(name) > len(rest)) {
			t.Fatalf("%q does not fit %q", name, pattern)
		}
		ok, why := s.DecideField(Subject{User: user}, "r", name)
		if why == "" || ok && (user == "" || !m.fits || p.hasUser && m.user != state.Escape(user) || state.CheckName(name) != nil || name[0] == '$') {
			t.Fatalf("%q may write %q by %q: %s", user, name, pattern, why)
		}
	})
}
