package rights

import (
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"switchboard/broker/auth"
	"switchboard/broker/namespace"
)

var secret = []byte(strings.Repeat("s", auth.MinSecret))

// rules returns the rules of a broker with token keys and a namespace.
func rules(t *testing.T) Rules {
	t.Helper()
	tokens, err := auth.NewTokens(auth.Options{HS256: [][]byte{secret}})
	if err != nil {
		t.Fatal(err)
	}
	set, err := namespace.New([]namespace.Rule{{
		Name: "room:*", Subscribe: namespace.Users, Publish: namespace.Grant, Message: 128,
		Fields: []namespace.FieldRule{{Pattern: "seat/*", Write: namespace.Claim, Bytes: 16}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return Rules{Tokens: tokens, Namespaces: set}
}

func sign(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(secret)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// allowed returns the rights of an answer that are allowed.
func allowed(a Answer) string {
	var list []string
	for _, r := range a.Rights {
		if r.Allowed {
			list = append(list, r.Right)
		}
	}
	return strings.Join(list, " ")
}

func TestExplain(t *testing.T) {
	expires := time.Now().Add(time.Hour).Truncate(time.Second)
	token := sign(t, jwt.MapClaims{"sub": "bob", "client": "tab", "exp": expires.Unix(), "channels": map[string]string{"room:7": "pub"}})
	for name, c := range map[string]struct {
		query   Query
		user    string
		connect bool
		rights  string
	}{
		"a client without a user": {Query{Channel: "room:7"}, "", false, ""},
		"a user":                  {Query{User: "bob", Channel: "room:7"}, "bob", true, "subscribe"},
		"a token with a grant":    {Query{Token: token, Channel: "room:7"}, "bob", true, "subscribe publish"},
		"the token of this user":  {Query{Token: token, User: "bob", Channel: "room:8"}, "bob", true, "subscribe"},
		"no namespace":            {Query{User: "bob", Channel: "news"}, "bob", true, ""},
	} {
		a, err := rules(t).Explain(c.query)
		if err != nil || a.User != c.user || a.Connect.Allowed != c.connect || allowed(a) != c.rights || a.Channel != c.query.Channel {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
		if wantRule := c.query.Channel != "news"; (a.Rule == "room:*") != wantRule || (a.Limits == "128 bytes a message") != wantRule {
			t.Errorf("%s: the rule %q has the limits %q", name, a.Rule, a.Limits)
		}
		if withToken := c.query.Token != ""; (a.Client == "tab") != withToken || (a.Expires == expires.UnixMilli()) != withToken {
			t.Errorf("%s: the token is for %q until %d", name, a.Client, a.Expires)
		}
		for i, r := range a.Rights {
			if r.Right != namespace.Actions[i].String() || r.Why == "" {
				t.Errorf("%s: right %d is %+v", name, i, r)
			}
		}
	}
}

// TestExplainUser: a client subscribes to $user:<name> to follow a user.
func TestExplainUser(t *testing.T) {
	granted := sign(t, jwt.MapClaims{"sub": "bob", "channels": map[string]string{"$user:amy": "presence"}})
	for _, c := range []struct {
		query  Query
		rights string
	}{
		{Query{User: "bob", Channel: "$user:bob"}, "subscribe"}, {Query{User: "bob", Channel: "$user:amy"}, ""},
		{Query{Token: granted, Channel: "$user:amy"}, "subscribe"}, {Query{Channel: "$user:amy"}, ""}, {Query{User: "bob", Channel: "$user:"}, ""},
	} {
		if a, err := rules(t).Explain(c.query); err != nil || allowed(a) != c.rights || a.Rights[0].Why == "" {
			t.Errorf("%+v: %+v, %v", c.query, a.Rights, err)
		}
	}
}

func TestExplainFields(t *testing.T) {
	a, err := rules(t).Explain(Query{User: "bob", Channel: "room:7", Fields: []string{"seat/A1", "$turn", "turn"}})
	if err != nil || len(a.Fields) != 3 {
		t.Fatalf("%+v, %v", a.Fields, err)
	}
	for i, want := range []bool{true, false, false} {
		if f := a.Fields[i]; f.Allowed != want || f.Why == "" || want != strings.Contains(f.Limits, "16 bytes") {
			t.Errorf("field %+v", f)
		}
	}
}

func TestRefusedTokens(t *testing.T) {
	valid := sign(t, jwt.MapClaims{"sub": "bob"})
	for token, want := range map[string]string{
		"nonsense": "bad token",
		sign(t, jwt.MapClaims{"sub": "bob", "exp": time.Now().Add(-time.Hour).Unix()}): auth.ErrExpired.Error(),
		valid: "its user is bob, not amy",
	} {
		_, err := rules(t).Explain(Query{Token: token, User: "amy", Channel: "room:7"})
		if err == nil || !strings.HasPrefix(err.Error(), "token: ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), token) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	open := rules(t)
	open.Tokens = nil
	if _, err := open.Explain(Query{Token: valid, Channel: "room:7"}); err == nil {
		t.Error("an open broker ignores tokens, and the answer does not say so")
	}
	if a, err := open.Explain(Query{Channel: "room:7"}); err != nil || !a.Connect.Allowed {
		t.Errorf("an open broker: %+v, %v", a, err)
	}
}
