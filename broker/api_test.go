package broker_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"switchboard/broker"
	"switchboard/broker/auth"
	"switchboard/queue"
)

// TestAPI makes calls and checks their answers.
func TestAPI(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Limits.Message, o.Limits.Batch = 180, 3 })
	long := strings.Repeat("x", 200)
	for _, row := range []struct {
		method, path, body string
		status             int
		contains           string // part of the answer
	}{
		{"POST", "/v1/push", `{"channel":"a","data":1}`, 200, `id`},
		{"POST", "/v1/push", `{"user":"unknown","data":1}`, 200, `clients:[]`},
		{"POST", "/v1/push", `{"client":"never-seen","data":1}`, 200, `online:false`},
		{"POST", "/v1/push", `{"all":true,"data":1}`, 200, `all:true`},
		{"POST", "/v1/push", `{"channels":["a","b c"],"data":1}`, 200, `bad_request`},
		{"POST", "/v1/push", `{"channel":"a"}`, 400, `data: missing`},
		{"POST", "/v1/push", `{"data":1}`, 400, `exactly one of`},
		{"POST", "/v1/push", `{"channel":"a","user":"b","data":1}`, 400, `exactly one of`},
		{"POST", "/v1/push", `{"channels":[],"data":1}`, 400, `empty`},
		{"POST", "/v1/push", `{"channels":["1","2","3","4"],"data":1}`, 413, `at most 3`},
		{"POST", "/v1/push", `{"channels":["1",2],"data":1}`, 400, `channels: number does not fit`},
		{"POST", "/v1/push", `{"users":["` + strings.Repeat(",", 1<<16) + `"],"data":1}`, 400, `at most 200`},
		{"POST", "/v1/push", `{"users":[` + strings.Repeat(`"a",`, 1<<16) + `"a"],"data":1}`, 413, `more than 65536 names`},
		{"POST", "/v1/push", `{"channel":"$all","data":1}`, 403, `system`},
		{"POST", "/v1/push", `{"channel":"a","data":"` + long + `"}`, 413, `202 bytes`},
		{"POST", "/v1/push", `{"channel":"a","data":1,"ttl":5}`, 400, `ttl`},
		{"POST", "/v1/push", `{"client":"a","data":1,"ttl":0}`, 400, `ttl`},
		{"POST", "/v1/push", `{"client":"a","data":1,"ttl":60}`, 200, `id`},
		{"POST", "/v1/push", `{"channel":"a","data":1,"key":"a b"}`, 400, `key`},
		{"POST", "/v1/push", `{"channel":"a","data":1,"durable":true}`, 400, `memory`},
		{"POST", "/v1/push", `{"client":"a","data":1,"durable":true}`, 400, `memory`},
		{"POST", "/v1/push", `{"channel":"a","data":1,"durable":false}`, 200, `id`},
		{"POST", "/v1/push", `{"chanel":"a","data":1}`, 400, `chanel`},
		{"POST", "/v1/push", `{"channel":7,"data":1}`, 400, `channel`},
		{"POST", "/v1/push", `{"channel":"a","data":` + strings.Repeat("[", 80) + strings.Repeat("]", 80) + `}`, 400, `64 levels`},
		{"POST", "/v1/push", "{\"channel\":\"a\",\"data\":\"\xff\"}", 400, `UTF-8`},
		{"POST", "/v1/push", `not json`, 400, `byte 2`},
		{"POST", "/v1/push", `{"channel":"a","data":1} x`, 400, `the JSON object`},
		{"POST", "/v1/push/batch", `{"messages":[{"channel":"a","data":1},{"chanel":"a"},{"user":"u","data":2}]}`, 200, `chanel`},
		{"POST", "/v1/push/batch", `{"messages":[]}`, 400, `between 1 and 3`},
		{"POST", "/v1/push/batch", `{"messages":[{},{},{},{}]}`, 400, `more than 3`},
		{"POST", "/v1/push/batch", `{"messages":[1,1,1,1]}`, 400, `more than 3`},
		{"POST", "/v1/push/batch", `{"messages":{}}`, 400, `not a list`},
		{"POST", "/v1/notify", `{}`, 400, `between 1 and 3`},
		{"POST", "/v1/notify", `{"channels":["a b"]}`, 400, `byte 1`},
		{"POST", "/v1/reply", `{"client":"a","data":1}`, 400, `ref`},
		{"POST", "/v1/users/query", `{"users":["a","b"]}`, 200, `online:false`},
		{"POST", "/v1/users/query", `{"users":[]}`, 400, `users`},
		{"GET", "/v1/channels/a", "", 200, `messages:`},
		{"GET", "/v1/channels/a%20b", "", 400, `byte 1`},
		{"GET", "/v1/channels/a/history?limit=1", "", 200, `more:true`},
		{"GET", "/v1/channels/a/history?limit=x", "", 400, `limit`},
		{"GET", "/v1/users/unknown", "", 200, `online:false`},
		{"GET", "/v1/servers", "", 200, `connections`},
		{"GET", "/v1/nothing", "", 404, `/v1/nothing`},
		{"GET", "/v1/push", "", 405, `GET /v1/push`},
		{"GET", "/healthz", "", 200, i.ID()},
		{"GET", "/readyz", "", 200, `ready:true`},
	} {
		status, answer := i.call(t, row.method, row.path, row.body)
		if status != row.status || !strings.Contains(fmt.Sprint(answer), row.contains) {
			t.Errorf("%s %s %.60s: %d %v; want %d with %q", row.method, row.path, row.body, status, answer, row.status, row.contains)
		}
	}
}

// TestCrossOriginPush: pages of other origins must not push to an open broker, although a browser
// on the same machine reaches it.
func TestCrossOriginPush(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+i.HTTP+"/v1/push", strings.NewReader(`{"all":true,"data":1}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", "https://evil.example")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("a push from a page of another origin: %d, want 403", resp.StatusCode)
	}
}

func TestBatchKeepsOrderPerTarget(t *testing.T) {
	t.Parallel()
	s, _ := redisStore(t, shared.Client(t), testBeat)
	brokers := startThree(t, s, nil)
	p := dialers["tcp"](t, brokers[1])
	p.connect("c", "")
	p.subscribe("a")
	var messages []string
	for n := range 500 {
		messages = append(messages, fmt.Sprintf(`{"channel":"a","data":%d},{"client":"other%d","data":1}`, n, n))
	}
	status, answer := brokers[0].call(t, "POST", "/v1/push/batch", `{"messages":[`+strings.Join(messages, ",")+`]}`)
	if status != 200 || len(answer["results"].([]any)) != 1000 {
		t.Fatalf("%d, %d results", status, len(answer["results"].([]any)))
	}
	for n := range 500 {
		p.expect(object{"type": "message", "data": n})
	}
}

// TestAPIKeysAndTokens: calls need a key, and connects need a token.
func TestAPIKeysAndTokens(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.NewTokens(auth.Options{EdDSA: [][]byte{pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})}})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := auth.NewKeys([]string{"plain:backend-key-of-the-test"})
	if err != nil {
		t.Fatal(err)
	}
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Access.Tokens, o.Access.Keys = tokens, keys })
	token := func(user string, expires time.Time) string {
		s, err := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{"sub": user, "exp": expires.Unix()}).SignedString(private)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if status, _ := i.call(t, "POST", "/v1/push", `{"channel":"a","data":1}`); status != 401 {
		t.Errorf("a push without a key: %d, want 401", status)
	}
	if status, _ := i.call(t, "GET", "/healthz", ""); status != 200 {
		t.Errorf("healthz: %d, want 200", status)
	}
	hour := time.Now().Add(time.Hour)
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		for name, row := range map[string]struct{ token, code string }{
			"none":    {"", "unauthorized"},
			"forged":  {token("alice", hour) + "x", "unauthorized"},
			"expired": {token("alice", time.Now().Add(-time.Hour)), "expired"},
		} {
			p := dial(i)
			p.send(`{"type":"connect","client":"c","user":"alice","token":%q,"ref":1}`, row.token)
			received := p.untilClosed()
			if len(received) != 2 || received[0]["code"] != "unauthorized" || received[1]["code"] != row.code {
				t.Errorf("%s token: received %v", name, received)
			}
		}
		p := dial(i)
		p.send(`{"type":"connect","client":"c","user":"mallory","token":%q,"ref":1}`, token("alice", hour))
		p.expect(object{"type": "connected", "user": "alice"})
		p.send(`{"type":"publish","channel":"a","data":1,"ref":2}`)
		p.expect(object{"type": "error", "code": "forbidden"})
		p.send(`{"type":"refresh","token":%q,"ref":3}`, token("bob", hour))
		p.expect(object{"type": "error", "code": "forbidden"})
		p.send(`{"type":"refresh","token":%q,"ref":4}`, token("alice", time.Now().Add(2*time.Second)))
		p.expect(object{"type": "refreshed", "ref": 4})
		if received := p.untilClosed(); len(received) != 1 || received[0]["code"] != "expired" {
			t.Errorf("after the token expired: received %v, want expired", received)
		}
	})
}

// TestOpenOnlyOnLoopback: New refuses options that let every caller in on a public address.
func TestOpenOnlyOnLoopback(t *testing.T) {
	keys, _ := auth.NewKeys([]string{"plain:backend-key-of-the-test"})
	tokens, _ := auth.NewTokens(auth.Options{HS256: [][]byte{[]byte(strings.Repeat("s", 32))}})
	s := memoryStore(queue.Options{})
	for _, row := range []struct {
		name     string
		change   func(*broker.Options)
		contains string
	}{
		{"no keys", func(o *broker.Options) { o.Access.Tokens = tokens }, "auth.keys"},
		{"no tokens", func(o *broker.Options) { o.Access.Keys = keys }, "token"},
		{"no peer secret", func(o *broker.Options) { o.Access.Keys, o.Access.Tokens, o.Store.Shared = keys, tokens, true }, "peer_secret"},
		{"a short peer secret", func(o *broker.Options) { o.Access.Insecure, o.Links.Secret = true, "change-me" }, "peer_secret: it has 9 bytes"},
		{"links on the public address", func(o *broker.Options) { o.Access.Insecure, o.Store.Shared = true, true }, "peer: the links"},
		{"links on the public address, confirmed", func(o *broker.Options) { o.Access.Insecure, o.Store.Shared, o.Links.Address = true, true, "http" }, ""},
		{"links on a separate port", func(o *broker.Options) { o.Access.Insecure, o.Store.Shared, o.Links.Address = true, true, "0.0.0.0:0" }, ""},
		{"links on loopback", func(o *broker.Options) { o.Access.Insecure, o.Store.Shared, o.Listen.HTTP = true, true, "127.0.0.1:0" }, ""},
		{"keys and tokens", func(o *broker.Options) { o.Access.Keys, o.Access.Tokens = keys, tokens }, ""},
		{"insecure", func(o *broker.Options) { o.Access.Insecure = true }, ""},
		{"loopback", func(o *broker.Options) { o.Listen.HTTP, o.Listen.TCP = "127.0.0.1:0", "[::1]:0" }, ""},
		{"bad address", func(o *broker.Options) { o.Listen.HTTP = "nonsense" }, "http"},
	} {
		o := broker.Options{
			Store:  broker.StoreOptions{Registry: s.registry, Queue: s.queue},
			Listen: broker.ListenOptions{HTTP: ":0", TCP: "0.0.0.0:0"},
		}
		row.change(&o)
		_, err := broker.New(o)
		if row.contains == "" && err != nil || row.contains != "" && (err == nil || !strings.Contains(err.Error(), row.contains)) {
			t.Errorf("%s: %v; want an error with %q", row.name, err, row.contains)
		}
	}
}
