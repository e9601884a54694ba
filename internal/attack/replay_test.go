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

// replayedTokens shows tokens again that were good once. (A token is good for whoever bears it, as long as it lasts: its
// own user may show it twice.)
func replayedTokens(t *testing.T, s *siege) {
	expired := s.with("mallory", map[string]any{"exp": time.Now().Add(-2 * time.Second).Unix()})
	for _, e := range entrances {
		a := s.enter(t, e, "")
		a.say(connectAs("mallory", expired))
		if got, want := a.refusal(), e.closing("error:unauthorized", "expired", 4004); got != want {
			t.Errorf("%s: an expired token is told %q, want %q", e.name, got, want)
		}
		first, second := s.known(t, e, "mallory"), s.known(t, e, "mallory")
		for _, a := range []*assailant{first, second} {
			a.say(fmt.Sprintf(`{"type":"refresh","token":%q}`, expired))
			if got := a.answer(); got != "error:unauthorized" {
				t.Errorf("%s: to refresh with an expired token is told %q", e.name, got)
			}
			a.say(`{"type":"subscribe","channel":"inbox:mallory"}`)
			a.until(t, "subscribed")
			_ = a.Close()
		}
	}
}

// refreshAsAnother tries to become somebody else on a live connection.
func refreshAsAnother(t *testing.T, s *siege) {
	for _, e := range entrances {
		a := s.known(t, e, "mallory")
		a.say(fmt.Sprintf(`{"type":"refresh","token":%q}`, s.token("admin")))
		a.say(`{"type":"subscribe","channel":"inbox:admin"}`)
		for _, what := range []string{"another's token", "another's channel behind it"} {
			if got := a.answer(); got != "error:forbidden" {
				t.Errorf("%s: %s is told %q, want error:forbidden", e.name, what, got)
			}
		}
		a.say(fmt.Sprintf(`{"type":"refresh","token":%q}`, s.token("mallory")))
		a.until(t, "refreshed")
		_ = a.Close()
	}
}

// replayedConnects are connects that somebody has recorded and sends again behind a later one.
func replayedConnects(t *testing.T, s *siege) {
	for _, e := range entrances {
		connect := func(attempt int) *assailant {
			a := s.enter(t, e, "")
			a.say(fmt.Sprintf(`{"type":"connect","client":"replayed-%s","instance":"i","attempt":%d,"token":%q}`, e.name, attempt, s.token("replayed")))
			return a
		}
		first, later := connect(1), connect(2) // in any order: the broker does not see which was dialled first
		later.until(t, "connected")
		if got, want := connect(1).verdict(), e.closing("", "superseded", 4002); got != want {
			t.Errorf("%s: the replayed connect is told %q, want %q", e.name, got, want)
		}
		if got, want := first.verdict(), e.closing("", "superseded", 4002); got != want {
			t.Errorf("%s: the first one is told %q, want %q", e.name, got, want)
		}
		later.say(`{"type":"subscribe","channel":"inbox:replayed"}`)
		later.until(t, "subscribed")
		_ = later.Close()
	}
}

// replayedPushes makes one push many times, at once and then again: it arrives once.
func replayedPushes(t *testing.T, s *siege) {
	user := fmt.Sprintf("pushed-%d", s.comer.Add(1))
	a := s.known(t, entrances[0], user)
	push := func(text string) (id int64) {
		status, answer := s.call(s.ctx, t, http.MethodPost, "/v1/push", fmt.Sprintf(`{"user":%q,"key":%q,"data":%q}`, user, text, text))
		var pushed struct {
			Results []struct {
				Clients []struct{ ID int64 }
			}
		}
		if err := json.Unmarshal([]byte(answer), &pushed); err != nil || status != http.StatusOK ||
			len(pushed.Results) != 1 || len(pushed.Results[0].Clients) != 1 {
			t.Errorf("%s is answered with %d %s", text, status, answer)
			return 0
		}
		return pushed.Results[0].Clients[0].ID
	}
	first := push("first")
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			if id := push("first"); id != first {
				t.Errorf("repeated, the push has id %d, not %d", id, first)
			}
		})
	}
	calls.Wait()
	if push("last") == first {
		t.Error("two keys are one push")
	}
	for _, want := range []string{`"first"`, `"last"`} {
		if got := a.until(t, "message"); string(got.Data) != want {
			t.Errorf("got %s, want %s", got.Data, want)
		}
	}
	_ = a.Close()
}

// forgedKeys calls the API as somebody who has no key, or no good one.
func forgedKeys(t *testing.T, s *siege) {
	for _, key := range []string{"", "x", s.key[:len(s.key)-1], s.key + "x", strings.ToUpper(s.key), s.token("admin"), strings.Repeat("k", 8000)} {
		for path, method := range map[string]string{
			"/v1/push": http.MethodPost, "/v1/push/batch": http.MethodPost, "/v1/servers": http.MethodGet,
			"/v1/users/admin/disconnect": http.MethodPost, "/v1/users/admin": http.MethodGet, "/v1/none": http.MethodGet,
		} {
			status, answer, err := s.request(s.ctx, method, path, key, strings.NewReader(`{"channel":"room:plaza","data":1}`))
			if err != nil || status != http.StatusUnauthorized {
				t.Errorf("%s with key %.20q: %d %s (%v)", path, key, status, answer, err)
			}
		}
	}
	if status, answer, err := s.request(s.ctx, http.MethodGet, "/peer/link", "", nil); err != nil || status != http.StatusOK && status != http.StatusNotFound && status < 400 {
		t.Errorf("/peer/link: %d %s (%v)", status, answer, err)
	}
}

// revokedKey takes a key of the issuer out.
func revokedKey(t *testing.T, s *siege) {
	token := seal(header("HS256", kidLeaving), claims("mallory", nil), jwt.SigningMethodHS256, s.leaving)
	var live []*assailant
	for _, e := range entrances {
		a := s.enter(t, e, "")
		a.say(connectAs("leaving-"+e.name, token))
		a.until(t, "connected")
		live = append(live, a)
	}
	s.configure(t, false)
	s.reload(s.ctx, t)
	for i, e := range entrances {
		a := s.enter(t, e, "")
		a.say(connectAs("leaving-"+e.name, token))
		if got, want := a.verdict(), e.closing("error:unauthorized", "unauthorized", 4003); got != want {
			t.Errorf("%s: told %q, want %q", e.name, got, want)
		}
		live[i].say(fmt.Sprintf(`{"type":"refresh","token":%q}`, token))
		if got := live[i].answer(); got != "error:unauthorized" {
			t.Errorf("%s: to refresh with it is told %q", e.name, got)
		}
	}
	s.holds(t)
}

// expiredTokens run out on live connections, and are shown again.
func expiredTokens(t *testing.T, s *siege) {
	token := s.with("mallory", map[string]any{"exp": time.Now().Add(3 * time.Second).Unix()})
	var live []*assailant
	for _, e := range entrances {
		a := s.enter(t, e, "")
		a.say(connectAs("expiring-"+e.name, token))
		live = append(live, a)
	}
	for i, e := range entrances {
		if got, want := live[i].verdict(), e.closing("", "expired", 4004); got != want && !strings.HasSuffix(got, want) { // a busy machine may let none in
			t.Errorf("%s: a live connection is told %q, want %q", e.name, got, want)
		}
		a := s.enter(t, e, "")
		a.say(connectAs("expiring-"+e.name, token))
		if got, want := a.verdict(), e.closing("error:unauthorized", "expired", 4004); got != want {
			t.Errorf("%s: shown again it is told %q, want %q", e.name, got, want)
		}
	}
	s.holds(t)
}

// TestReplayedWebhooks is the receiver of the README, to whom recorded and changed deliveries are sent.
func TestReplayedWebhooks(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 2<<20))
		if err != nil || webhook.Verify([]string{"secret"}, r.Header, body, 0) != nil {
			http.Error(w, "not for us", http.StatusUnauthorized)
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
		"fresh":                   {signed(now, "secret"), body, http.StatusOK},
		"old":                     {old, body, http.StatusUnauthorized},
		"old, with a new time":    {renewed, body, http.StatusUnauthorized},
		"from the future":         {signed(now.Add(webhook.Tolerance+time.Minute), "secret"), body, http.StatusUnauthorized},
		"of another secret":       {signed(now, "guessed"), body, http.StatusUnauthorized},
		"with another body":       {signed(now, "secret"), body + " ", http.StatusUnauthorized},
		"a body beyond all limit": {signed(now, "secret"), strings.Repeat(" ", 3<<20), http.StatusUnauthorized},
		"unsigned":                {http.Header{}, body, http.StatusUnauthorized},
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
