package namespace

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestBadRules(t *testing.T) {
	for name, c := range map[string]struct {
		rules []Rule
		want  string
	}{
		"no name":             {[]Rule{{}}, "the name is empty"},
		"no colon":            {[]Rule{{Name: "chat*"}}, "chat*: \"chat*\": a colon belongs before the *"},
		"star inside":         {[]Rule{{Name: "c*t:*"}}, "a * may stand at the end only"},
		"two stars":           {[]Rule{{Name: "**"}}, "a * may stand at the end only"},
		"braces":              {[]Rule{{Name: "{chat}:*"}}, "character '{' at byte 0"},
		"another placeholder": {[]Rule{{Name: "inbox:{name}"}}, "character '{' at byte 6"},
		"user in the middle":  {[]Rule{{Name: "inbox:{user}:*"}}, "character '{' at byte 6"},
		"user without colon":  {[]Rule{{Name: "inbox{user}"}}, "a colon belongs before {user}"},
		"user alone":          {[]Rule{{Name: "{user}"}}, "a colon belongs before {user}"},
		"star before user":    {[]Rule{{Name: "*:{user}"}}, "a * may stand at the end only"},
		"white space":         {[]Rule{{Name: "a b"}}, "character ' ' at byte 1"},
		"too long":            {[]Rule{{Name: strings.Repeat("a", 201)}}, "201 bytes"},
		"a system channel":    {[]Rule{{Name: "$all"}}, "are system channels"},
		"twice":               {[]Rule{{Name: "a:*"}, {Name: "a:*"}}, "a:* and a:* match the same channels"},
		"twice, * and {user}": {[]Rule{{Name: "a:*"}, {Name: "a:{user}"}}, "a:* and a:{user} match the same channels"},
		"named without user":  {[]Rule{{Name: "a:*", Publish: Named}}, "a:*: publish: named needs {user}"},
		"off and open":        {[]Rule{{Name: "a", NoPresence: true, Presence: Users}}, "presence: it is off, so it cannot be open to users"},
		"age":                 {[]Rule{{Name: "a", HistoryAge: MaxHistoryAge + 1}}, "history_age"},
		"a short age":         {[]Rule{{Name: "a", HistoryAge: MinHistoryAge - 1}}, "history_age"},
		"age below zero":      {[]Rule{{Name: "a", HistoryAge: -time.Second}}, "history_age"},
		"messages":            {[]Rule{{Name: "a", HistoryMessages: -1}}, "below zero"},
		"size":                {[]Rule{{Name: "a", Message: -1}}, "below zero"},
		"rate":                {[]Rule{{Name: "a", PublishRate: -1}}, "publish_rate"},
		"a field of needs":    {[]Rule{{Name: "a", Needs: "b c"}}, `needs: bad_request: field "b c"`},
		"a field of by":       {[]Rule{{Name: "a", By: "b{user"}}, `by: bad_request: field "b{user"`},
		"rate is NaN":         {[]Rule{{Name: "a", PublishRate: math.NaN()}}, "publish_rate"},
		"rate is infinite":    {[]Rule{{Name: "a", PublishRate: math.Inf(1)}}, "publish_rate"},
	} {
		if _, err := New(c.rules); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestFieldsOfUsers: in the fields that a rule names, {user} stands for an escaped name.
func TestFieldsOfUsers(t *testing.T) {
	r := Rule{Needs: "$$user/{user}", By: "name"}
	if got := r.NeededField("a/b c"); got != "$$user/a%2Fb%20c" {
		t.Errorf("needs is %s", got)
	}
	if got := r.ByField("amy"); got != "name" {
		t.Errorf("by is %s", got)
	}
	if got := (&Rule{}).ByField("amy"); got != "" {
		t.Errorf("by of a rule without it is %s", got)
	}
}

func TestParseAccess(t *testing.T) {
	for text, want := range map[string]Access{
		"nobody": BackendOnly, "anyone": Anyone, "users": Users, "grant": Grant, "named": Named,
		"named grant": Named | Grant, "grant named": Named | Grant,
	} {
		got, err := ParseAccess(strings.Fields(text)...)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		back, err := ParseAccess(strings.Split(got.String(), " or ")...)
		if err != nil || back != got {
			t.Errorf("%s is parsed back as %s, %v", got, back, err)
		}
	}
	for _, text := range []string{"", "all", "Users", strings.Join([]string{"users", "nobody"}, " "), "named,grant"} {
		if got, err := ParseAccess(strings.Fields(text)...); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
}

func TestGrants(t *testing.T) {
	for _, c := range []struct{ name, actions, want string }{
		{"chat:1", "sub", ""}, {"chat:*", "sub pub presence history", ""}, {"*", "*", ""}, {"news", " sub  pub ", ""},
		{"chat:1", "", "it grants nothing"},
		{"chat:1", "subscribe", `"subscribe" is none of`},
		{"chat:1", "sub,pub", "is none of"},
		{"chat*", "sub", "a colon belongs before the *"},
		{"*:chat", "sub", "at the end only"},
		{"", "sub", "the name is empty"},
		{"inbox:{user}", "sub", "character '{'"},
		{"a b", "sub", "character ' '"},
		{strings.Repeat("a", 300), "sub", "300 bytes"},
	} {
		var g Grants
		err := g.Add(c.name, c.actions)
		if c.want == "" && (err != nil || g.Empty()) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !g.Empty()) {
			t.Errorf("%q %q: %v, want %q", c.name, c.actions, err, c.want)
		}
	}
	var g Grants
	for range MaxGrants {
		if err := g.Add("a", "sub"); err != nil {
			t.Fatal(err)
		}
	}
	if g.Add("a", "sub") == nil {
		t.Error("more than MaxGrants are accepted")
	}
}

func TestGrantsAllow(t *testing.T) {
	g := mustGrant(t, "*", "sub", "chat:*", "pub", "$user:*", "history")
	for _, c := range []struct {
		action  Action
		channel string
		want    bool
	}{
		{Subscribe, "news", true}, {Subscribe, "$all", false}, {Subscribe, "$user:a", false}, {Subscribe, "", false},
		{Publish, "chat:1", true}, {Publish, "chat:", false}, {Publish, "chat", false}, {Publish, "news", false},
		{History, "$user:a", true}, {History, "$user:", false}, {History, "user:a", false},
	} {
		if got := g.allows(c.action, c.channel); got != c.want {
			t.Errorf("%s of %q: %v", c.action, c.channel, got)
		}
	}
}

// TestOverlappingGrants checks that a subject may do the actions of all its grants that match.
func TestOverlappingGrants(t *testing.T) {
	s := mustSet(t, Rule{Name: "chat:*", Subscribe: Grant, Publish: Grant, Presence: Grant, History: Grant})
	alice := Subject{User: "alice", Grants: mustGrant(t, "chat:*", "sub", "chat:1", "pub", "chat:1", "history", "$all", "*")}
	for channel, want := range map[string]string{
		"chat:1": "subscribe publish history", "chat:2": "subscribe", "chat:1:": "subscribe", "$all": "",
	} {
		if got := allowedActions(s, alice, channel); got != want {
			t.Errorf("%s: %q, want %q", channel, got, want)
		}
	}
}
