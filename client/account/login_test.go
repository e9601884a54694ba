package account_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"switchboard/client/account"
)

// TestLoginAtAnotherServer: the tokens of a server that does not know the account are not stored.
func TestLoginAtAnotherServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Message string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		answer := map[string]any{"token": "t", "expires_in": 300, "renewal": "r", "message": "v=AAAA"}
		if strings.HasSuffix(r.URL.Path, "/challenge") {
			_, nonce, _ := strings.Cut(body.Message, "r=")
			answer = map[string]any{"challenge": "c", "message": "r=" + nonce + "x,s=c2FsdA==,i=4096"}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	accounts, err := account.New(account.Options{URL: server.URL, Renewed: func(string) { t.Error("the renewal token is stored") }})
	check(t, err)
	_, err = accounts.Login(t.Context(), account.Credentials{Name: "amy", Password: "correct horse"})
	if err == nil || !strings.Contains(err.Error(), "not proved") {
		t.Errorf("%v", err)
	}
}
