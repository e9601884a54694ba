//go:build long

package attack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestAccounts attacks accounts with tokens of logins that have ended, with the token of a guest,
// and with calls that are to remove traces.
func TestAccounts(t *testing.T) {
	i := newIssuer(t)
	const kit = "kit: {accounts: {guests: true, issuer: login, audience: broker, iterations: 4096, " +
		"register_rate: 1000000, address_rate: 1000000, call_rate: 1000000}}"
	s := newScenario(t, i, kit, fmt.Sprintf("  hs256_secret: %s", i.shared))
	for _, a := range []struct {
		name   string
		attack func(*testing.T, *scenario)
	}{
		{"tokens of ended logins", endedLogins},
		{"the token of a guest", guestTakeover},
		{"nicknames that remove logins from the history", nicknames},
		{"other texts of tokens", otherTexts},
	} {
		t.Run(a.name, func(t *testing.T) { s.attackRepeatedly(t, a.attack) })
	}
	s.finish(t)
}

// login is the answer to a registration or a renewal.
type login struct {
	Account struct{ ID, Name, Nickname string }
	Token   string
	Renewal string
}

// register makes an account with the password "a long secret", or a guest without a name.
func (s *scenario) register(t *testing.T, name string) (l login) {
	t.Helper()
	body := `{}`
	if name != "" {
		body = fmt.Sprintf(`{"name":%q,"password":"a long secret"}`, name)
	}
	status, answer, err := s.request(s.ctx, http.MethodPost, "/v1/accounts", "", strings.NewReader(body))
	if err != nil || status != http.StatusOK {
		t.Fatalf("register %s: %d %s %v", name, status, answer, err)
	}
	if err := json.Unmarshal([]byte(answer), &l); err != nil {
		t.Fatal(err)
	}
	return l
}

// refused makes a call with a token and checks the status of the answer.
func (s *scenario) refused(t *testing.T, want int, method, path, token, body string) {
	t.Helper()
	if status, answer, err := s.request(s.ctx, method, path, token, strings.NewReader(body)); err != nil || status != want {
		t.Errorf("%s %s %s: %d %s %v, want %d", method, path, body, status, answer, err, want)
	}
}

// account returns an account as the backend sees it.
func (s *scenario) account(t *testing.T, id string) (l login) {
	t.Helper()
	_, answer := s.call(s.ctx, t, http.MethodGet, "/v1/accounts/"+id, "")
	if err := json.Unmarshal([]byte(answer), &l.Account); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	return l
}

func endedLogins(t *testing.T, s *scenario) {
	name := fmt.Sprint("victim-", s.clientCount.Add(1))
	l := s.register(t, name)
	if status, answer, err := s.request(s.ctx, http.MethodPost, "/v1/accounts/logout", "", strings.NewReader(fmt.Sprintf(`{"renewal":%q}`, l.Renewal))); err != nil || status != http.StatusOK {
		t.Fatalf("log out: %d %s %v", status, answer, err)
	}
	const me = "/v1/accounts/me"
	s.refused(t, http.StatusUnauthorized, http.MethodGet, me, l.Token, "")
	s.refused(t, http.StatusUnauthorized, http.MethodPatch, me, l.Token, `{"nickname":"Mallory"}`)
	s.refused(t, http.StatusUnauthorized, http.MethodPatch, me, l.Token, `{"name":"mallory","password":"a long secret"}`)
	s.refused(t, http.StatusUnauthorized, http.MethodPost, me+"/password", l.Token, `{"password":"a long secret","new":"another secret"}`)
	s.refused(t, http.StatusUnauthorized, http.MethodPost, me+"/delete", l.Token, `{"password":"a long secret"}`)
	if got := s.account(t, l.Account.ID).Account; got.Name != name || got.Nickname != "" {
		t.Errorf("the account of %s is %+v", name, got)
	}
}

func guestTakeover(t *testing.T, s *scenario) {
	guest, mallory := s.register(t, ""), s.register(t, "")
	name := fmt.Sprint("taken-", s.clientCount.Add(1))
	for _, renewal := range []string{"", mallory.Renewal, strings.Replace(mallory.Renewal, mallory.Account.ID, guest.Account.ID, 1)} {
		body := fmt.Sprintf(`{"name":%q,"password":"a long secret","renewal":%q}`, name, renewal)
		s.refused(t, http.StatusUnauthorized, http.MethodPatch, "/v1/accounts/me", guest.Token, body)
		s.refused(t, http.StatusUnauthorized, http.MethodPost, "/v1/accounts/me/delete", guest.Token, fmt.Sprintf(`{"renewal":%q}`, renewal))
	}
	s.refused(t, http.StatusUnauthorized, http.MethodPatch, "/v1/accounts/me", guest.Token, fmt.Sprintf(`{"name":%q,"password":"a long secret"}`, name))
	if got := s.account(t, guest.Account.ID).Account; got.Name != "" {
		t.Errorf("the guest has the name %s", got.Name)
	}
	body := fmt.Sprintf(`{"name":%q,"password":"a long secret","renewal":%q}`, name, guest.Renewal)
	s.refused(t, http.StatusOK, http.MethodPatch, "/v1/accounts/me", guest.Token, body)
}

func nicknames(t *testing.T, s *scenario) {
	l := s.register(t, "")
	for n := range 120 {
		if _, _, err := s.request(s.ctx, http.MethodPatch, "/v1/accounts/me", l.Token, strings.NewReader(fmt.Sprintf(`{"nickname":"Mallory %d"}`, n))); err != nil {
			t.Fatal(err)
		}
	}
	s.refused(t, http.StatusTooManyRequests, http.MethodPatch, "/v1/accounts/me", l.Token, `{"nickname":"Mallory"}`)
	if _, answer := s.call(s.ctx, t, http.MethodGet, "/v1/accounts/"+l.Account.ID+"/history", ""); !strings.Contains(answer, `"registered"`) {
		t.Errorf("the registration is no longer in the history: %s", answer)
	}
}

// otherTexts uses texts of tokens that differ from what the broker has issued.
func otherTexts(t *testing.T, s *scenario) {
	l := s.register(t, "")
	parts := strings.Split(l.Renewal, ".")
	for _, renewal := range []string{
		strings.Replace(l.Renewal, "."+parts[1]+".", ".+"+parts[1]+".", 1), strings.Replace(l.Renewal, "."+parts[1]+".", ".0"+parts[1]+".", 1),
		l.Renewal + "\n", "\n" + l.Renewal, strings.Replace(l.Renewal, ".", ".\r\n", 1), strings.ToLower(l.Renewal), l.Renewal + ".x",
	} {
		body, _ := json.Marshal(map[string]string{"renewal": renewal})
		s.refused(t, http.StatusUnauthorized, http.MethodPost, "/v1/accounts/renew", "", string(body))
	}
	for _, token := range []string{l.Token + "\n", strings.Replace(l.Token, ".", "\n.", 1), l.Token[:len(l.Token)-7] + "\r\n" + l.Token[len(l.Token)-7:], l.Token + "="} {
		for _, e := range endpoints {
			a := s.open(t, e, "")
			a.send(connectAs("phone", token))
			if got, want := a.refusal(), e.closing("error:unauthorized", "unauthorized", 4003); got != want {
				t.Errorf("%s: token %q: got %q, want %q", e.name, token[len(token)-10:], got, want)
			}
		}
	}
}
