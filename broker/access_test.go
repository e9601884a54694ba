package broker_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"switchboard/broker"
	"switchboard/broker/auth"
	"switchboard/broker/namespace"
	"switchboard/queue"
)

var tokenSecret = []byte("0123456789abcdef0123456789abcdef")

func signed(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(tokenSecret)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func tokens(t *testing.T, o auth.Options) *auth.Tokens {
	t.Helper()
	verified, err := auth.NewTokens(o)
	if err != nil {
		t.Fatal(err)
	}
	return verified
}

// API keys of the tests.
const (
	keyOne = "the-first-key-of-the-tests"
	keyTwo = "the-second-key-of-the-tests"
)

// keys parses entries: plain API keys, or entries in the form that auth.NewKey returns.
func keys(t *testing.T, entries ...string) auth.Keys {
	t.Helper()
	for i, entry := range entries {
		if !strings.HasPrefix(entry, "sha256:") {
			entries[i] = "plain:" + entry
		}
	}
	k, err := auth.NewKeys(entries)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func rules(t *testing.T, list ...namespace.Rule) *namespace.Set {
	t.Helper()
	set, err := namespace.New(list)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// withAccessRules returns a change of the options: keys, tokens and namespaces.
func withAccessRules(t *testing.T) func(*broker.Options) {
	return func(o *broker.Options) {
		o.Access.Keys, o.Access.Tokens = keys(t, keyOne), tokens(t, auth.Options{HS256: [][]byte{tokenSecret}})
		o.Access.Namespaces = rules(t,
			namespace.Rule{Name: "chat:*", Subscribe: namespace.Users, Publish: namespace.Grant, History: namespace.Users, HistoryMessages: 2},
			namespace.Rule{Name: "inbox:{user}", Subscribe: namespace.Named},
		)
	}
}

// callWithKey makes an API call with a key and returns the status and the body.
func (i instance) callWithKey(t *testing.T, key, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+i.HTTP+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestTokenGrantsChannels(t *testing.T) {
	t.Parallel()
	i := start(t, memoryStore(queue.Options{}), withAccessRules(t))
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		p := dial(i)
		p.send(`{"type":"connect","token":%q}`, signed(t, jwt.MapClaims{"sub": "alice", "channels": map[string]string{"chat:1": "pub"}}))
		p.expect(object{"type": "connected", "user": "alice"})
		p.subscribe("chat:1")
		p.subscribe("inbox:alice")
		p.send(`{"type":"subscribe","channel":"inbox:bob"}`)
		p.expect(object{"type": "error", "code": "forbidden"})
		p.send(`{"type":"publish","channel":"chat:2","data":1}`)
		p.expect(object{"type": "error", "code": "forbidden"})
		if status, body := i.callWithKey(t, keyOne, "POST", "/v1/push", `{"channel":"inbox:alice","data":"hi"}`); status != 200 {
			t.Fatal(status, body)
		}
		p.expect(object{"type": "message", "channel": "inbox:alice", "data": "hi"})

		p.send(`{"type":"refresh","token":%q}`, signed(t, jwt.MapClaims{"sub": "alice", "exp": time.Now().Unix() - 1}))
		p.expect(object{"type": "error", "code": "unauthorized"})
		p.send(`{"type":"refresh","token":%q}`, signed(t, jwt.MapClaims{"sub": "alice", "exp": time.Now().Unix() + 1}))
		p.expect(object{"type": "refreshed"})
		last := p.untilClosed() // the token expires after a second
		if c := last[len(last)-1]; c["type"] != "closing" || c["code"] != "expired" || c["reconnect"] != true {
			t.Errorf("got %v", last)
		}
	})
}

func TestNamespaceLimitsHistory(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), withAccessRules(t))
	for range 5 {
		if status, body := i.callWithKey(t, keyOne, "POST", "/v1/push", `{"channel":"chat:1","data":1}`); status != 200 {
			t.Fatal(status, body)
		}
	}
	_, body := i.callWithKey(t, keyOne, "GET", "/v1/channels/chat:1", "")
	if !strings.Contains(body, `"messages":2`) {
		t.Errorf("got %s", body)
	}
}

func TestReload(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), withAccessRules(t))
	p := dialers["tcp"](t, i)
	p.send(`{"type":"connect","token":%q}`, signed(t, jwt.MapClaims{"sub": "alice"}))
	p.expect(object{"type": "connected"})
	p.subscribe("chat:1")
	p.subscribe("inbox:alice")

	readKey, entry := auth.NewKey()
	next := broker.AccessOptions{
		Keys: keys(t, entry+" read new"), Tokens: tokens(t, auth.Options{HS256: [][]byte{[]byte("another secret, also of more than 32 bytes")}}),
		Namespaces: rules(t, namespace.Rule{Name: "inbox:{user}", Subscribe: namespace.Named}),
	}
	for name, bad := range map[string]broker.AccessOptions{
		"no API keys": {Tokens: next.Tokens}, "no token keys": {Keys: next.Keys}, "none": {},
	} {
		if err := i.Reload(bad); err == nil {
			t.Errorf("%s: the reload was accepted", name)
		}
	}
	if status, _ := i.callWithKey(t, keyOne, "GET", "/v1/servers", ""); status != 200 {
		t.Errorf("a refused reload changed the keys: %d, want 200", status)
	}
	if err := i.Reload(next); err != nil {
		t.Fatal(err)
	}
	p.expect(object{"type": "unsubscribed", "channel": "chat:1", "code": "forbidden", "ref": nil})
	p.send(`{"type":"unsubscribe","channel":"inbox:alice"}`) // the connection is still there
	p.expect(object{"type": "unsubscribed", "channel": "inbox:alice"})
	for _, c := range []struct {
		key, method, path string
		status            int
	}{
		{keyOne, "GET", "/v1/servers", 401}, {readKey, "GET", "/v1/servers", 200}, {readKey, "POST", "/v1/push", 403},
		{readKey, "POST", "/v1/users/alice/disconnect", 403},
	} {
		if status, body := i.callWithKey(t, c.key, c.method, c.path, `{"user":"alice","data":1}`); status != c.status {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, status, body, c.status)
		}
	}
	q := dialers["tcp"](t, i)
	q.send(`{"type":"connect","token":%q}`, signed(t, jwt.MapClaims{"sub": "alice"}))
	q.expect(object{"type": "error", "code": "unauthorized"})
}

// TestTokenKeysAreFetched: until the endpoint answers, the broker is not ready and asks clients to
// reconnect later.
func TestTokenKeysAreFetched(t *testing.T) {
	t.Parallel()
	var answer atomic.Pointer[string]
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if text := answer.Load(); text != nil {
			_, _ = w.Write([]byte(*text))
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer endpoint.Close()
	remote, err := auth.NewRemote(auth.RemoteOptions{URL: endpoint.URL})
	if err != nil {
		t.Fatal(err)
	}
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
		o.Access.Keys, o.Access.Tokens = keys(t, keyOne), tokens(t, auth.Options{Remote: remote})
	})
	i.awaitReady(t, http.StatusServiceUnavailable)
	// The key pair is from RFC 8037, appendix A.
	set := `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`
	text := signEd(t, "a", "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A", jwt.MapClaims{"sub": "alice"})
	p := dialers["tcp"](t, i)
	p.send(`{"type":"connect","token":%q}`, text)
	p.expect(object{"type": "error", "code": "unavailable"})
	p.expect(object{"type": "closing", "code": "overloaded", "reconnect": true})
	answer.Store(&set)
	i.awaitReady(t, http.StatusOK)
	q := dialers["tcp"](t, i)
	q.send(`{"type":"connect","token":%q}`, text)
	q.expect(object{"type": "connected", "user": "alice"})
	_, metrics := i.callWithKey(t, keyOne, "GET", "/metrics", "")
	for _, want := range []string{`switchboard_token_keys 1`, `switchboard_tokens_total{outcome="ok"} 1`, `switchboard_tokens_total{outcome="unready"} 1`, `switchboard_token_key_fetches_total{outcome="ok"}`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%s is not in the metrics", want)
		}
	}
}

func signEd(t *testing.T, kid, seed string, claims jwt.MapClaims) string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(seed)
	if err != nil {
		t.Fatal(err)
	}
	unsigned := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
	unsigned.Header["kid"] = kid
	text, err := unsigned.SignedString(ed25519.NewKeyFromSeed(raw))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
