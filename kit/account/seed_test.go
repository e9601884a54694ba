package account

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xdg-go/scram"

	"switchboard/internal/wire"
)

// The tests of this file are the scenarios of seed 5.

// TestRegister: an e-mail address is a name, a name is taken once, and the id is random.
func TestRegister(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		amy := a.register(t, "amy@example.com")
		_, err := b.Register(t.Context(), Registration{Name: "AMY@Example.com", Password: "another secret"}, here)
		wantCode(t, err, wire.Conflict)
		got := ok[Account](t)(b.Find(t.Context(), "Amy@example.com"))
		if got.ID != amy.Account.ID || got.State != Open || got.Name != "amy@example.com" || got.Created == 0 {
			t.Errorf("found %+v", got)
		}
		b.caller(t, amy)
		for _, bad := range []Registration{
			{Name: "bob", Password: "short"}, {Name: "b b", Password: "long enough"}, {Name: "", Password: "long enough"},
			{Name: strings.Repeat("x", 255), Password: "long enough"}, {Name: "bob", Password: "long enough", Client: "a/b"},
			{Name: "bob", Password: "long enough\x00"}, {Name: "bob", Password: "long enough", Nickname: "a\nb"},
		} {
			_, err := a.Register(t.Context(), bad, here)
			wantCode(t, err, wire.BadRequest)
		}
	})
}

// TestNameWithColon: every character of an e-mail address is part of the name, also those that have
// a meaning in keys.
func TestNameWithColon(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		names := []string{"a:b@example.com", "a%3Ab@example.com", "a_b@example.com", "{a}b@example.com", "a*b@example.com", "ä@example.com"}
		ids := map[string]bool{}
		for _, n := range names {
			ids[a.register(t, n).Account.ID] = true
			if s, err := b.login(t, n, "secret of "+n); err != nil || !ids[s.Account.ID] {
				t.Errorf("%s: %v", n, err)
			}
		}
		if len(ids) != len(names) {
			t.Errorf("%d names have %d accounts", len(names), len(ids))
		}
	})
}

// TestLoginByPassword: the web logs in with a password over TLS. The last login and the history
// show it.
func TestLoginByPassword(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		a.register(t, "amy")
		s := ok[Session](t)(b.login(t, "Amy", "secret of amy"))
		if s.Account.Login == nil || s.Account.Login.Address != "192.0.2.7" || s.ExpiresIn != 300 {
			t.Errorf("logged in as %+v", s)
		}
		for _, c := range []Credentials{
			{Name: "amy", Password: "secret of amy "}, {Name: "amy"}, {Name: "bob", Password: "secret of amy"},
			{Name: "amy", Password: strings.Repeat("x", 300)}, {Name: "", Password: "x"},
		} {
			_, err := a.Login(t.Context(), c, here)
			wantCode(t, err, wire.Unauthorized)
		}
		list := ok[[]Event](t)(a.History(t.Context(), s.Account.ID))
		if len(list) != 2 || list[0].Type != LoggedIn || list[1].Type != Registered || list[0].Address != "192.0.2.7" || list[0].N != 2 {
			t.Errorf("history %+v", list)
		}
	})
}

// challenge logs in by SCRAM with the client of a library, the second message at another broker.
func challenge(t *testing.T, first, second instance, name, password string) (s Session, sent Credentials, err error) {
	t.Helper()
	client := ok[*scram.Client](t)(scram.SHA256.NewClient(name, password, ""))
	conversation := client.NewConversation()
	message := ok[string](t)(conversation.Step(""))
	c := ok[Challenge](t)(first.Challenge(t.Context(), message, here))
	sent = Credentials{Challenge: c.Challenge, Message: ok[string](t)(conversation.Step(c.Message))}
	if s, err = second.Accounts.Login(t.Context(), sent, here); err == nil {
		if _, err := conversation.Step(s.Message); err != nil || !conversation.Valid() {
			t.Errorf("the server has not proved that it knows the account: %v", err)
		}
	}
	return s, sent, err
}

// TestLoginByChallenge: a client logs in without sending the password.
func TestLoginByChallenge(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		id := a.register(t, "amy,=@example.com").Account.ID
		s, sent, err := challenge(t, a, b, "amy,=@example.com", "secret of amy,=@example.com")
		if err != nil || s.Account.ID != id {
			t.Fatalf("logged in as %+v, %v", s.Account, err)
		}
		_, err = a.Login(t.Context(), sent, here) // a copy of the message
		wantCode(t, err, wire.Unauthorized)
		_, _, err = challenge(t, a, b, "amy,=@example.com", "another secret")
		wantCode(t, err, wire.Unauthorized)
		_, _, err = challenge(t, a, b, "nobody", "another secret")
		wantCode(t, err, wire.Unauthorized)
		other := "A"
		if sent.Challenge[0] == 'A' {
			other = "B"
		}
		sent.Challenge = other + sent.Challenge[1:]
		_, err = a.Login(t.Context(), sent, here)
		wantCode(t, err, wire.BadRequest)
		for _, bad := range []string{"", "n,,n=amy", "p=tls-unique,,n=amy,r=abc", "x", "n,,n=,r=abc"} {
			_, err := a.Challenge(t.Context(), bad, here)
			wantCode(t, err, wire.BadRequest)
		}
	})
}

// TestUnknownNamesLookKnown: the answer to a first message does not tell whether there is an
// account.
func TestUnknownNamesLookKnown(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		a.register(t, "amy")
		salts := map[string]string{}
		for _, n := range []string{"amy", "bob", "amy", "bob", "carl"} {
			c := ok[Challenge](t)(b.Challenge(t.Context(), "n,,n="+n+",r=abcdefgh", here))
			_, rest, _ := strings.Cut(c.Message, ",")
			if salts[n] != "" && salts[n] != rest {
				t.Errorf("%s has two salts: %s, %s", n, salts[n], rest)
			}
			salts[n] = rest
			if want := fmt.Sprintf(",i=%d", minIteration); !strings.HasSuffix(rest, want) || len(rest) != len(salts["amy"]) {
				t.Errorf("%s: %s", n, rest)
			}
		}
		if salts["bob"] == salts["carl"] {
			t.Error("two names have one salt")
		}
	})
}

// TestMarkDeleted: a deleted account is only marked. Its name stays taken, and it can be restored.
func TestMarkDeleted(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		amy := a.register(t, "amy")
		id := amy.Account.ID
		_, err := a.DeleteSelf(t.Context(), id, "not the secret", here)
		wantCode(t, err, wire.Unauthorized)
		ok[Account](t)(a.DeleteSelf(t.Context(), id, "secret of amy", here))
		_, err = b.login(t, "amy", "secret of amy")
		wantCode(t, err, wire.Unauthorized)
		_, err = b.Renew(t.Context(), amy.Renewal, here)
		wantCode(t, err, wire.Unauthorized)
		_, err = b.Register(t.Context(), Registration{Name: "amy", Password: "long enough"}, here)
		wantCode(t, err, wire.Conflict)
		_, err = b.Lock(t.Context(), id)
		wantCode(t, err, wire.Conflict)
		if got := ok[Account](t)(b.Restore(t.Context(), id)); got.State != Open {
			t.Errorf("restored as %+v", got)
		}
		ok[Session](t)(b.login(t, "amy", "secret of amy"))
	})
}

// TestHistory: the last 100 events stay, also after more of them.
func TestHistory(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		id := a.register(t, "amy").Account.ID
		for i := range HistorySize + 20 {
			change := []func(context.Context, string) (Account, error){a.Lock, b.Unlock}[i%2]
			ok[Account](t)(change(t.Context(), id))
		}
		list := ok[[]Event](t)(b.History(t.Context(), id))
		if len(list) != HistorySize || list[0].N != HistorySize+21 {
			t.Errorf("%d events, the last one is %+v", len(list), list[0])
		}
		if !slices.IsSortedFunc(list, func(x, y Event) int { return int(y.N - x.N) }) {
			t.Error("the events are not in order")
		}
	})
}
