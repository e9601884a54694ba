//go:build long

package attack

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"switchboard/webhook"
)

// replayedTokens uses tokens that have expired. Until a token expires, its user may use it on
// several connections.
func replayedTokens(t *testing.T, s *scenario) {
	expired := s.tokenWith("mallory", map[string]any{"exp": time.Now().Add(-2 * time.Second).Unix()})
	for _, e := range endpoints {
		a := s.open(t, e, "")
		a.send(connectAs("mallory", expired))
		if got, want := a.refusal(), e.closing("error:unauthorized", "expired", 4004); got != want {
			t.Errorf("%s: expired token: got %q, want %q", e.name, got, want)
		}
		first, second := s.connectUser(t, e, "mallory"), s.connectUser(t, e, "mallory")
		for _, a := range []*attacker{first, second} {
			a.send(fmt.Sprintf(`{"type":"refresh","token":%q}`, expired))
			if got := a.reply(); got != "error:unauthorized" {
				t.Errorf("%s: refresh with an expired token: got %q", e.name, got)
			}
			a.send(`{"type":"subscribe","channel":"inbox:mallory"}`)
			a.waitFor(t, "subscribed")
			_ = a.Close()
		}
	}
}

// refreshAsAnother tries to change the user of a connection.
func refreshAsAnother(t *testing.T, s *scenario) {
	for _, e := range endpoints {
		a := s.connectUser(t, e, "mallory")
		a.send(fmt.Sprintf(`{"type":"refresh","token":%q}`, s.token("admin")))
		a.send(`{"type":"subscribe","channel":"inbox:admin"}`)
		for _, what := range []string{"token of another user", "channel of another user after it"} {
			if got := a.reply(); got != "error:forbidden" {
				t.Errorf("%s: %s: got %q, want error:forbidden", e.name, what, got)
			}
		}
		a.send(fmt.Sprintf(`{"type":"refresh","token":%q}`, s.token("mallory")))
		a.waitFor(t, "refreshed")
		_ = a.Close()
	}
}

// replayedConnects sends an earlier connect request again after a later one.
func replayedConnects(t *testing.T, s *scenario) {
	for _, e := range endpoints {
		connect := func(attempt int) *attacker {
			a := s.open(t, e, "")
			a.send(fmt.Sprintf(`{"type":"connect","client":"replayed-%s","instance":"i","attempt":%d,"token":%q}`, e.name, attempt, s.token("replayed")))
			return a
		}
		first, later := connect(1), connect(2) // the broker may receive them in any order
		later.waitFor(t, "connected")
		if got, want := connect(1).outcome(), e.closing("", "superseded", 4002); got != want {
			t.Errorf("%s: the replayed connect: got %q, want %q", e.name, got, want)
		}
		if got, want := first.outcome(), e.closing("", "superseded", 4002); got != want {
			t.Errorf("%s: the first one: got %q, want %q", e.name, got, want)
		}
		later.send(`{"type":"subscribe","channel":"inbox:replayed"}`)
		later.waitFor(t, "subscribed")
		_ = later.Close()
	}
}

// replayedPushes makes the same push many times in parallel. The message must arrive once.
func replayedPushes(t *testing.T, s *scenario) {
	user := fmt.Sprintf("pushed-%d", s.clientCount.Add(1))
	a := s.connectUser(t, endpoints[0], user)
	push := func(text string) (id int64) {
		status, answer := s.call(s.ctx, t, http.MethodPost, "/v1/push", fmt.Sprintf(`{"user":%q,"key":%q,"data":%q}`, user, text, text))
		var pushed struct {
			Results []struct {
				Clients []struct{ ID int64 }
			}
		}
		if err := json.Unmarshal([]byte(answer), &pushed); err != nil || status != http.StatusOK ||
			len(pushed.Results) != 1 || len(pushed.Results[0].Clients) != 1 {
			t.Errorf("push %s: %d %s", text, status, answer)
			return 0
		}
		return pushed.Results[0].Clients[0].ID
	}
	first := push("first")
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			if id := push("first"); id != first {
				t.Errorf("the repeated push has id %d, want %d", id, first)
			}
		})
	}
	calls.Wait()
	if push("last") == first {
		t.Error("two pushes with different keys have one id")
	}
	for _, want := range []string{`"first"`, `"last"`} {
		if got := a.waitFor(t, "message"); string(got.Data) != want {
			t.Errorf("got %s, want %s", got.Data, want)
		}
	}
	_ = a.Close()
}

// forgedKeys calls the API without a key and with invalid keys.
func forgedKeys(t *testing.T, s *scenario) {
	for _, key := range []string{"", "x", s.Key[:len(s.Key)-1], s.Key + "x", strings.ToUpper(s.Key), s.token("admin"), strings.Repeat("k", 8000)} {
		for path, method := range map[string]string{
			"/v1/push": http.MethodPost, "/v1/push/batch": http.MethodPost, "/v1/servers": http.MethodGet,
			"/v1/users/admin/disconnect": http.MethodPost, "/v1/users/admin": http.MethodGet, "/v1/none": http.MethodGet,
		} {
			status, answer, err := s.request(s.ctx, method, path, key, strings.NewReader(`{"channel":"hall:shared","data":1}`))
			if err != nil || status != http.StatusUnauthorized {
				t.Errorf("%s with key %.20q: %d %s (%v)", path, key, status, answer, err)
			}
		}
	}
	if status, answer, err := s.request(s.ctx, http.MethodGet, "/peer/link", "", nil); err != nil || status < http.StatusBadRequest {
		t.Errorf("/peer/link: %d %s (%v)", status, answer, err)
	}
}

// revokedKey removes a key of the issuer and reloads the settings.
func revokedKey(t *testing.T, s *scenario) {
	token := sign(header("HS256", kidRevocable), claims("mallory", nil), jwt.SigningMethodHS256, s.revocable)
	var live []*attacker
	for _, e := range endpoints {
		a := s.open(t, e, "")
		a.send(connectAs("revocable-"+e.name, token))
		a.waitFor(t, "connected")
		live = append(live, a)
	}
	s.configure(t, false)
	s.reload(s.ctx, t)
	for i, e := range endpoints {
		a := s.open(t, e, "")
		a.send(connectAs("revocable-"+e.name, token))
		if got, want := a.outcome(), e.closing("error:unauthorized", "unauthorized", 4003); got != want {
			t.Errorf("%s: got %q, want %q", e.name, got, want)
		}
		live[i].send(fmt.Sprintf(`{"type":"refresh","token":%q}`, token))
		if got := live[i].reply(); got != "error:unauthorized" {
			t.Errorf("%s: refresh with the revoked key: got %q", e.name, got)
		}
	}
	s.checkService(t)
}

// expiredTokens uses a token that expires while connections are open, and again after that.
func expiredTokens(t *testing.T, s *scenario) {
	token := s.tokenWith("mallory", map[string]any{"exp": time.Now().Add(3 * time.Second).Unix()})
	var live []*attacker
	for _, e := range endpoints {
		a := s.open(t, e, "")
		a.send(connectAs("expiring-"+e.name, token))
		live = append(live, a)
	}
	for i, e := range endpoints {
		// On a busy machine the token may expire before the connect.
		if got, want := live[i].outcome(), e.closing("", "expired", 4004); got != want && !strings.HasSuffix(got, want) {
			t.Errorf("%s: open connection: got %q, want %q", e.name, got, want)
		}
		a := s.open(t, e, "")
		a.send(connectAs("expiring-"+e.name, token))
		if got, want := a.outcome(), e.closing("error:unauthorized", "expired", 4004); got != want {
			t.Errorf("%s: new connection: got %q, want %q", e.name, got, want)
		}
	}
	s.checkService(t)
}

// TestReplayedWebhooks sends recorded and changed deliveries to the receiver from the README.
func TestReplayedWebhooks(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 2<<20))
		if err != nil || webhook.Verify([]string{"secret"}, r.Header, body, 0) != nil {
			http.Error(w, "invalid signature", http.StatusUnauthorized)
		}
	}))
	defer receiver.Close()
	const body = `{"events":[]}`
	signed := func(at time.Time, secret string) http.Header {
		h := http.Header{}
		webhook.Sign([]string{secret}, h, []byte(body), at)
		return h
	}
	now := time.Now()
	old := signed(now.Add(-webhook.Tolerance-time.Minute), "secret")
	renewed := old.Clone()
	renewed.Set(webhook.TimestampHeader, signed(now, "secret").Get(webhook.TimestampHeader))
	for name, c := range map[string]struct {
		header http.Header
		body   string
		want   int
	}{
		"fresh":                {signed(now, "secret"), body, http.StatusOK},
		"old":                  {old, body, http.StatusUnauthorized},
		"old, with a new time": {renewed, body, http.StatusUnauthorized},
		"from the future":      {signed(now.Add(webhook.Tolerance+time.Minute), "secret"), body, http.StatusUnauthorized},
		"of another secret":    {signed(now, "guessed"), body, http.StatusUnauthorized},
		"with another body":    {signed(now, "secret"), body + " ", http.StatusUnauthorized},
		"too large body":       {signed(now, "secret"), strings.Repeat(" ", 3<<20), http.StatusUnauthorized},
		"unsigned":             {http.Header{}, body, http.StatusUnauthorized},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, receiver.URL, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = c.header
		response, err := receiver.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != c.want {
			t.Errorf("%s: %s, want %d", name, response.Status, c.want)
		}
	}
}
