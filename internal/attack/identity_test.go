package attack

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"switchboard/internal/await"
)

// TestTheBrokerStandsWithStrangers has a broker that lets clients in without a token, and thieves
// of their ids.
func TestTheBrokerStandsWithStrangers(t *testing.T) {
	s := begin(t, newIssuer(t), "", "  anonymous: true")
	for _, a := range []struct {
		name   string
		attack func(*testing.T, *siege)
	}{
		{"an anonymous client that is online", stolenOnline},
		{"an anonymous client with messages", stolenWaiting},
		{"a user's client that is offline", stolenOffline},
		{"squatting on a user's client", squatting},
		{"a secret that is none", malformedSecrets},
		{"a client that the token fixes", fixedClients},
	} {
		t.Run(a.name, func(t *testing.T) { s.under(t, a.attack) })
	}
	s.end(t)
}

// anonymous connects without a token, and is what the broker then says.
func (s *siege) anonymous(t *testing.T, e entrance, client, secret string) (*assailant, event) {
	t.Helper()
	a := s.enter(t, e, "")
	a.say(fmt.Sprintf(`{"type":"connect","client":%q,"secret":%q}`, client, secret))
	return a, a.until(t, "connected")
}

// guesses are secrets of somebody who has not the right one.
func guesses(right string) []string {
	return []string{
		"", strings.ToLower(right), right[:len(right)-1] + "_", right + "A", strings.Repeat("A", len(right)), rand.Text(),
		"00000000000000000000000000000000", // the hash of none
	}
}

// robbed has thieves connect with an id in every way that there is; each must get one of its own.
func (s *siege) robbed(t *testing.T, id, secret string) {
	t.Helper()
	for _, e := range entrances {
		for _, guess := range guesses(secret) {
			a, got := s.anonymous(t, e, id, guess)
			if got.Client == id || got.Secret == secret || got.Secret == guess || len(got.Secret) < 16 {
				t.Errorf("%s: %s, with %q, became %+v", e.name, id, guess, got)
			}
			_ = a.Close()
		}
		if e.frames {
			a := s.enter(t, e, "?client="+url.QueryEscape(id)+"&secret="+rand.Text())
			if got := a.until(t, "connected"); got.Client == id {
				t.Errorf("%s: by its URL it became %s", e.name, id)
			}
			_ = a.Close()
		}
	}
}

// left waits until the client is offline, as the backend sees it: nobody is there to be answered.
func (s *siege) left(t *testing.T, id string) {
	t.Helper()
	await.NoError(s.ctx, t, id+" is offline", func() error {
		status, answer := s.call(s.ctx, t, http.MethodPost, "/v1/reply", fmt.Sprintf(`{"client":%q,"ref":1,"data":1}`, id))
		if status != http.StatusNotFound {
			return fmt.Errorf("%d %s", status, answer)
		}
		return nil
	})
}

func stolenOnline(t *testing.T, s *siege) {
	owner, first := s.anonymous(t, entrances[0], fmt.Sprint("tab-", s.comer.Add(1)), "")
	s.robbed(t, first.Client, first.Secret)
	if status, answer := s.call(s.ctx, t, http.MethodPost, "/v1/push", fmt.Sprintf(`{"client":%q,"data":1}`, first.Client)); status != http.StatusOK {
		t.Errorf("%d %s", status, answer)
	}
	owner.until(t, "message")
}

func stolenWaiting(t *testing.T, s *siege) {
	owner, first := s.anonymous(t, entrances[1], fmt.Sprint("tab-", s.comer.Add(1)), rand.Text())
	_ = owner.Close()
	s.left(t, first.Client)
	s.robbed(t, first.Client, first.Secret) // with nothing waiting
	s.call(s.ctx, t, http.MethodPost, "/v1/push", fmt.Sprintf(`{"client":%q,"data":1}`, first.Client))
	s.robbed(t, first.Client, first.Secret)
	back, again := s.anonymous(t, entrances[1], first.Client, first.Secret)
	if again.Client != first.Client {
		t.Errorf("the owner of %s became %s", first.Client, again.Client)
	}
	back.until(t, "message")
}

// stolenOffline: the id of a user's client says whose it is, also while nothing holds it.
func stolenOffline(t *testing.T, s *siege) {
	user := fmt.Sprint("owner-", s.comer.Add(1))
	owner := s.enter(t, entrances[0], "")
	owner.say(connectAs("phone", s.token(user)))
	id := owner.until(t, "connected").Client
	if id != user+"/phone" {
		t.Errorf("the phone of %s is %s", user, id)
	}
	_ = owner.Close()
	s.left(t, id)
	s.squat(t, id)
	mallory := s.enter(t, entrances[0], "")
	mallory.say(connectAs("phone", s.token("mallory")))
	if got := mallory.until(t, "connected"); got.Client != "mallory/phone" {
		t.Errorf("mallory became %s", got.Client)
	}
	if _, answer := s.call(s.ctx, t, http.MethodPost, "/v1/push", fmt.Sprintf(`{"user":%q,"data":"mine"}`, user)); !strings.Contains(answer, id) {
		t.Errorf("a push to %s went to %s", user, answer)
	}
	owner = s.enter(t, entrances[0], "")
	owner.say(connectAs(id, s.token(user))) // as it was told
	if got := owner.until(t, "message"); string(got.Data) != `"mine"` {
		t.Errorf("the owner was sent %s", got.Data)
	}
}

// squat asks for the id of a user's client as another, and without being a user.
func (s *siege) squat(t *testing.T, id string) {
	t.Helper()
	for _, e := range entrances {
		for _, say := range []string{
			connectAs(id, s.token("mallory")), connectAs("mallory/"+id, s.token("mallory")), connectAs("/"+id, s.token("mallory")),
			fmt.Sprintf(`{"type":"connect","client":%q}`, id), fmt.Sprintf(`{"type":"connect","client":%q,"secret":"%s"}`, id, rand.Text()),
			`{"type":"connect","client":"` + strings.Replace(id, "/", `\u002f`, 1) + `"}`,
		} {
			a := s.enter(t, e, "")
			a.say(say)
			if got, want := a.refusal(), e.closing(malformed, "unauthorized", 4003); got != want {
				t.Errorf("%s: %.100s is told %q, want %q", e.name, say, got, want)
			}
		}
	}
}

// squatting takes ids before their owners come, the longest among them.
func squatting(t *testing.T, s *siege) {
	user, client := strings.Repeat("u", 200), strings.Repeat("c", 200)
	s.squat(t, "alice/phone")
	s.squat(t, user+"/"+client)
	longest := s.enter(t, entrances[0], "")
	longest.say(connectAs(client, s.token(user)))
	if got := longest.until(t, "connected").Client; got != user+"/"+client {
		t.Errorf("the id of 401 bytes became one of %d", len(got))
	}
	path := "/v1/clients/" + url.PathEscape(user+"/"+client) + "/disconnect"
	if status, answer := s.call(s.ctx, t, http.MethodPost, path, ""); status != http.StatusOK || !strings.Contains(answer, "1") {
		t.Errorf("%d %s", status, answer)
	}
	for _, id := range []string{user + "/" + client + "c", "u" + user + "/" + client, "/phone", "alice/", "/"} {
		if status, answer := s.call(s.ctx, t, http.MethodPost, "/v1/push", fmt.Sprintf(`{"client":%q,"data":1}`, id)); status != http.StatusBadRequest {
			t.Errorf("%.20s…, of %d bytes: %d %s", id, len(id), status, answer)
		}
	}
}

func malformedSecrets(t *testing.T, s *siege) {
	for _, e := range entrances {
		for _, secret := range []string{"x", "fifteen bytes..", strings.Repeat("x", 201), `sixteen bytes \u0000`, `sixteen bytes \n..`, `sixteen bytes \u202e`} {
			a := s.enter(t, e, "")
			a.say(`{"type":"connect","client":"tab","secret":"` + secret + `"}`)
			if got, want := a.refusal(), e.closing(malformed, "unauthorized", 4003); got != want {
				t.Errorf("%s: secret %.30q is told %q, want %q", e.name, secret, got, want)
			}
		}
	}
	if log := s.Tail(0); strings.Contains(log, "fifteen bytes..") {
		t.Error("a secret is in the log")
	}
}

// fixedClients has tokens that are of one client of their user.
func fixedClients(t *testing.T, s *siege) {
	fixed := s.with("mallory", map[string]any{"client": "phone"})
	for _, e := range entrances {
		for _, client := range []string{"tablet", "mallory/tablet", "mallory/phone2"} {
			a := s.enter(t, e, "")
			a.say(connectAs(client, fixed))
			if got, want := a.refusal(), e.closing(denied, "unauthorized", 4003); got != want {
				t.Errorf("%s: %s is told %q, want %q", e.name, client, got, want)
			}
		}
		for _, client := range []string{"", "phone", "mallory/phone"} {
			a := s.enter(t, e, "")
			a.say(connectAs(client, fixed))
			if got := a.until(t, "connected").Client; got != "mallory/phone" {
				t.Errorf("%s: %q became %s", e.name, client, got)
			}
			a.say(fmt.Sprintf(`{"type":"refresh","token":%q}`, s.with("mallory", map[string]any{"client": "tablet"})))
			if got := a.answer(); got != denied {
				t.Errorf("%s: a token of another client is told %q", e.name, got)
			}
			_ = a.Close()
		}
		for _, claim := range []any{"a/b", "alice/phone", "", "a b", 7, nil, []string{"phone"}, strings.Repeat("c", 201)} {
			others := map[string]any{"client": claim}
			if claim == nil {
				others = map[string]any{"client": map[string]any{}}
			}
			a := s.enter(t, e, "")
			a.say(connectAs("phone", s.with("mallory", others)))
			if got, want := a.refusal(), e.closing("error:unauthorized", "unauthorized", 4003); got != want {
				t.Errorf("%s: claim %.30v is told %q, want %q", e.name, claim, got, want)
			}
		}
		a := s.enter(t, e, "")
		a.say(connectAs("phone", s.with("mallory", map[string]any{"client": "phone", "sub": nil})))
		if got, want := a.refusal(), e.closing("error:unauthorized", "unauthorized", 4003); got != want {
			t.Errorf("%s: a token without a user is told %q, want %q", e.name, got, want)
		}
	}
}
