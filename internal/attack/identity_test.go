//go:build long

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

// TestClientIDTheft attacks a broker that allows anonymous clients. The attackers try to take over
// the ids of other clients.
func TestClientIDTheft(t *testing.T) {
	s := newScenario(t, newIssuer(t), "", "  anonymous: true")
	for _, a := range []struct {
		name   string
		attack func(*testing.T, *scenario)
	}{
		{"anonymous client, online", stealOnlineID},
		{"anonymous client, offline with messages", stealIDWithMessages},
		{"client of a user, offline", stealUserClientID},
		{"ids of users, before their owners", squatting},
		{"malformed secrets", malformedSecrets},
		{"tokens bound to one client", clientBoundTokens},
	} {
		t.Run(a.name, func(t *testing.T) { s.attackRepeatedly(t, a.attack) })
	}
	s.finish(t)
}

// connectWithSecret connects without a token. It returns the connection and the connected event.
func (s *scenario) connectWithSecret(t *testing.T, e endpoint, client, secret string) (*attacker, event) {
	t.Helper()
	a := s.open(t, e, "")
	a.send(fmt.Sprintf(`{"type":"connect","client":%q,"secret":%q}`, client, secret))
	return a, a.waitFor(t, "connected")
}

// wrongSecrets returns secrets that differ from the right one.
func wrongSecrets(right string) []string {
	return []string{
		"", strings.ToLower(right), right[:len(right)-1] + "_", right + "A", strings.Repeat("A", len(right)), rand.Text(),
		"00000000000000000000000000000000",
	}
}

// checkIDTheft connects with the id of another client in all possible ways. The broker must assign
// another id each time.
func (s *scenario) checkIDTheft(t *testing.T, id, secret string) {
	t.Helper()
	for _, e := range endpoints {
		for _, guess := range wrongSecrets(secret) {
			a, got := s.connectWithSecret(t, e, id, guess)
			if got.Client == id || got.Secret == secret || got.Secret == guess || len(got.Secret) < 16 {
				t.Errorf("%s: %s with %q got %+v", e.name, id, guess, got)
			}
			_ = a.Close()
		}
		if e.frames {
			a := s.open(t, e, "?client="+url.QueryEscape(id)+"&secret="+rand.Text())
			if got := a.waitFor(t, "connected"); got.Client == id {
				t.Errorf("%s: with the id in the URL it got %s", e.name, id)
			}
			_ = a.Close()
		}
	}
}

// waitOffline waits until a reply to the client fails because the client is offline.
func (s *scenario) waitOffline(t *testing.T, id string) {
	t.Helper()
	await.NoError(s.ctx, t, id+" is offline", func() error {
		status, answer := s.call(s.ctx, t, http.MethodPost, "/v1/reply", fmt.Sprintf(`{"client":%q,"ref":1,"data":1}`, id))
		if status != http.StatusNotFound {
			return fmt.Errorf("%d %s", status, answer)
		}
		return nil
	})
}

func stealOnlineID(t *testing.T, s *scenario) {
	owner, first := s.connectWithSecret(t, endpoints[0], fmt.Sprint("tab-", s.clientCount.Add(1)), "")
	s.checkIDTheft(t, first.Client, first.Secret)
	if status, answer := s.call(s.ctx, t, http.MethodPost, "/v1/push", fmt.Sprintf(`{"client":%q,"data":1}`, first.Client)); status != http.StatusOK {
		t.Errorf("%d %s", status, answer)
	}
	owner.waitFor(t, "message")
}

func stealIDWithMessages(t *testing.T, s *scenario) {
	owner, first := s.connectWithSecret(t, endpoints[1], fmt.Sprint("tab-", s.clientCount.Add(1)), rand.Text())
	_ = owner.Close()
	s.waitOffline(t, first.Client)
	s.checkIDTheft(t, first.Client, first.Secret) // no messages are waiting
	s.call(s.ctx, t, http.MethodPost, "/v1/push", fmt.Sprintf(`{"client":%q,"data":1}`, first.Client))
	s.checkIDTheft(t, first.Client, first.Secret)
	back, again := s.connectWithSecret(t, endpoints[1], first.Client, first.Secret)
	if again.Client != first.Client {
		t.Errorf("the owner of %s got %s", first.Client, again.Client)
	}
	back.waitFor(t, "message")
}

// stealUserClientID tries to take over the id of a user's client while the client is offline. The
// id begins with the user, so no other user can take it.
func stealUserClientID(t *testing.T, s *scenario) {
	user := fmt.Sprint("owner-", s.clientCount.Add(1))
	owner := s.open(t, endpoints[0], "")
	owner.send(connectAs("phone", s.token(user)))
	id := owner.waitFor(t, "connected").Client
	if id != user+"/phone" {
		t.Errorf("the id of the phone of %s is %s", user, id)
	}
	_ = owner.Close()
	s.waitOffline(t, id)
	s.checkSquatting(t, id)
	mallory := s.open(t, endpoints[0], "")
	mallory.send(connectAs("phone", s.token("mallory")))
	if got := mallory.waitFor(t, "connected"); got.Client != "mallory/phone" {
		t.Errorf("mallory got %s", got.Client)
	}
	if _, answer := s.call(s.ctx, t, http.MethodPost, "/v1/push", fmt.Sprintf(`{"user":%q,"data":"mine"}`, user)); !strings.Contains(answer, id) {
		t.Errorf("a push to %s went to %s", user, answer)
	}
	owner = s.open(t, endpoints[0], "")
	owner.send(connectAs(id, s.token(user))) // the full id, as in the connected event
	if got := owner.waitFor(t, "message"); string(got.Data) != `"mine"` {
		t.Errorf("the owner received %s", got.Data)
	}
}

// checkSquatting requests the id of a user's client as another user and as an anonymous client.
func (s *scenario) checkSquatting(t *testing.T, id string) {
	t.Helper()
	for _, e := range endpoints {
		for _, request := range []string{
			connectAs(id, s.token("mallory")), connectAs("mallory/"+id, s.token("mallory")), connectAs("/"+id, s.token("mallory")),
			fmt.Sprintf(`{"type":"connect","client":%q}`, id), fmt.Sprintf(`{"type":"connect","client":%q,"secret":"%s"}`, id, rand.Text()),
			`{"type":"connect","client":"` + strings.Replace(id, "/", `\u002f`, 1) + `"}`,
		} {
			a := s.open(t, e, "")
			a.send(request)
			if got, want := a.refusal(), e.closing(malformed, "unauthorized", 4003); got != want {
				t.Errorf("%s: %.100s: got %q, want %q", e.name, request, got, want)
			}
		}
	}
}

// squatting requests ids of users that have never connected, including the longest valid id.
func squatting(t *testing.T, s *scenario) {
	user, client := strings.Repeat("u", 200), strings.Repeat("c", 200)
	s.checkSquatting(t, "alice/phone")
	s.checkSquatting(t, user+"/"+client)
	longest := s.open(t, endpoints[0], "")
	longest.send(connectAs(client, s.token(user)))
	if got := longest.waitFor(t, "connected").Client; got != user+"/"+client {
		t.Errorf("the id has %d bytes, want 401", len(got))
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

func malformedSecrets(t *testing.T, s *scenario) {
	for _, e := range endpoints {
		for _, secret := range []string{"x", "fifteen bytes..", strings.Repeat("x", 201), `sixteen bytes \u0000`, `sixteen bytes \n..`, `sixteen bytes \u202e`} {
			a := s.open(t, e, "")
			a.send(`{"type":"connect","client":"tab","secret":"` + secret + `"}`)
			if got, want := a.refusal(), e.closing(malformed, "unauthorized", 4003); got != want {
				t.Errorf("%s: secret %.30q: got %q, want %q", e.name, secret, got, want)
			}
		}
	}
	if log := s.Tail(0); strings.Contains(log, "fifteen bytes..") {
		t.Error("a secret is in the log")
	}
}

// clientBoundTokens uses tokens that are valid for only one client of their user.
func clientBoundTokens(t *testing.T, s *scenario) {
	fixed := s.tokenWith("mallory", map[string]any{"client": "phone"})
	for _, e := range endpoints {
		for _, client := range []string{"tablet", "mallory/tablet", "mallory/phone2"} {
			a := s.open(t, e, "")
			a.send(connectAs(client, fixed))
			if got, want := a.refusal(), e.closing(denied, "unauthorized", 4003); got != want {
				t.Errorf("%s: %s: got %q, want %q", e.name, client, got, want)
			}
		}
		for _, client := range []string{"", "phone", "mallory/phone"} {
			a := s.open(t, e, "")
			a.send(connectAs(client, fixed))
			if got := a.waitFor(t, "connected").Client; got != "mallory/phone" {
				t.Errorf("%s: %q got %s", e.name, client, got)
			}
			a.send(fmt.Sprintf(`{"type":"refresh","token":%q}`, s.tokenWith("mallory", map[string]any{"client": "tablet"})))
			if got := a.reply(); got != denied {
				t.Errorf("%s: refresh with a token of another client: got %q", e.name, got)
			}
			_ = a.Close()
		}
		for _, claim := range []any{"a/b", "alice/phone", "", "a b", 7, map[string]any{}, []string{"phone"}, strings.Repeat("c", 201)} {
			a := s.open(t, e, "")
			a.send(connectAs("phone", s.tokenWith("mallory", map[string]any{"client": claim})))
			if got, want := a.refusal(), e.closing("error:unauthorized", "unauthorized", 4003); got != want {
				t.Errorf("%s: claim %.30v: got %q, want %q", e.name, claim, got, want)
			}
		}
		a := s.open(t, e, "")
		a.send(connectAs("phone", s.tokenWith("mallory", map[string]any{"client": "phone", "sub": nil})))
		if got, want := a.refusal(), e.closing("error:unauthorized", "unauthorized", 4003); got != want {
			t.Errorf("%s: a token without a user: got %q, want %q", e.name, got, want)
		}
	}
}
