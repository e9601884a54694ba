package namespace

import (
	"testing"
)

func TestDecideField(t *testing.T) {
	s := mustSet(t,
		Rule{Name: "room:*", Fields: []FieldRule{
			{Pattern: "any", Write: Anyone}, {Pattern: "member/{user}", Write: Users}, {Pattern: "seat/*", Write: Claim},
			{Pattern: "doc/*", Write: Grant}, {Pattern: "both/*", Write: Users | Grant}, {Pattern: "closed"},
		}},
		Rule{Name: "inbox:{user}", Fields: []FieldRule{{Pattern: "*", Write: Named}}},
	)
	none, amy, backend := Subject{}, Subject{User: "amy"}, Subject{Backend: true}
	granted := Subject{User: "amy", Grants: mustGrant(t, "room:1", "write")}
	all := Subject{User: "amy", Grants: mustGrant(t, "room:*", "*")}
	other := Subject{User: "amy", Grants: mustGrant(t, "room:*", "sub pub presence history state")}
	const room = "namespace room:*"
	for _, c := range []struct {
		set            *Set
		subject        Subject
		channel, field string
		allowed        bool
		want           string
	}{
		{s, none, "room:1", "any", true, room + ", fields any: write is open to anyone"},
		{s, amy, "room:1", "member/amy", true, room + ", fields member/{user}: write is open to users"},
		{s, amy, "room:1", "member/bob", false, room + ", fields member/{user}: the name has another user"},
		{s, none, "room:1", "member/amy", false, room + ", fields member/{user}: the name has another user"},
		{s, amy, "room:1", "seat/1", true, room + ", fields seat/*: write is open to claim"},
		{s, none, "room:1", "seat/1", false, room + ", fields seat/*: write is open to claim, and the client has no user"},
		{s, Subject{Open: true}, "room:1", "seat/1", true, room + ", fields seat/*: write is open to claim"},
		{s, amy, "room:1", "doc/1", false, room + ", fields doc/*: write is open to grant, and no grant of the token fits"},
		{s, other, "room:1", "doc/1", false, room + ", fields doc/*: write is open to grant, and no grant of the token fits"},
		{s, granted, "room:1", "doc/1", true, room + ", fields doc/*: write is open to grant"},
		{s, granted, "room:2", "doc/1", false, room + ", fields doc/*: write is open to grant, and no grant of the token fits"},
		{s, all, "room:2", "doc/1", true, room + ", fields doc/*: write is open to grant"},
		{s, amy, "room:1", "both/1", true, room + ", fields both/*: write is open to users"},
		{s, all, "room:1", "closed", false, room + ", fields closed: write is open to the backend only"},
		{s, all, "room:1", "x", false, room + ": no pattern fits the field, so it belongs to the backend"},
		{s, all, "room:1", "$x", false, room + ": a field that begins with $ belongs to the backend"},
		{s, backend, "room:1", "$x", true, room + ": the backend may"},
		{s, backend, "room:1", "member/amy", true, room + ", fields member/{user}: the backend may"},
		{s, amy, "room:1", "a b", false, "field \"a b\": character ' ' at byte 1 of the name is not allowed"},
		{s, backend, "room:1", "$", false, "field $: nothing follows the $"},
		{s, amy, "inbox:amy", "x", true, "namespace inbox:{user}, fields *: write is open to named"},
		{s, amy, "inbox:bob", "x", false, "namespace inbox:{user}, fields *: write is open to named, which is bob"},
		{s, backend, "news", "x", false, "no namespace fits the name, so the channel is closed"},
		{s, backend, "room:", "x", false, "namespace room:*: nothing follows the prefix"},
		{s, amy, "room:*", "any", false, "a name with * is a pattern and not a channel"},
		{s, backend, "$all", "x", false, "it is a system channel"},
		{s, backend, "a b", "x", false, "channel: character ' ' at byte 1 of the name is not allowed"},
		{Open(), none, "news", "x", true, "no keys and no namespaces are configured: write is open to anyone"},
		{Open(), amy, "news", "$x", false, "no keys and no namespaces are configured: a field that begins with $ belongs to the backend"},
		{Open(), none, "$all", "x", false, "it is a system channel"},
		{Keyed(false), amy, "news", "x", false, "no namespaces are configured: write is open to the backend only"},
		{Keyed(false), backend, "news", "$x", true, "no namespaces are configured: the backend may"},
		{Keyed(true), amy, "news", "x", true, "no namespaces are configured: write is open to users"},
		{Keyed(true), none, "news", "x", false, "no namespaces are configured: write is open to users, and the client has no user"},
	} {
		allowed, why := c.set.DecideField(c.subject, c.channel, c.field)
		if allowed != c.allowed || why != c.want {
			t.Errorf("%q writes %s of %s: %v, %q; want %v, %q", c.subject.User, c.field, c.channel, allowed, why, c.allowed, c.want)
		}
		if _, again := c.set.AllowsField(c.subject, c.channel, c.field); again != allowed {
			t.Errorf("%s of %s: AllowsField differs", c.field, c.channel)
		}
	}
}
