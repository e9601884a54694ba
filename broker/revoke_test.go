package broker_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"switchboard/broker"
	"switchboard/broker/auth"
	"switchboard/internal/await"
	"switchboard/queue"
	"switchboard/registry"
)

// withTokens returns a change of the options: the broker takes tokens, and needs no API key.
func withTokens(t *testing.T) func(*broker.Options) {
	return func(o *broker.Options) {
		o.Access.Tokens = tokens(t, auth.Options{HS256: [][]byte{tokenSecret}})
		o.Timing.Beat = testBeat
	}
}

// issued returns a token of a user that was issued some time ago.
func issued(t *testing.T, user string, ago time.Duration) string {
	t.Helper()
	return signed(t, jwt.MapClaims{"sub": user, "iat": time.Now().Add(-ago).Unix()})
}

// connectToken connects a client with a token.
func (p *testClient) connectToken(client, token string) {
	p.t.Helper()
	p.send(`{"type":"connect","client":%q,"token":%q}`, client, token)
	p.expect(object{"type": "connected"})
}

// expectRevoked waits until the connection ends since its token was revoked.
func (p *testClient) expectRevoked() {
	p.t.Helper()
	received := p.untilClosed()
	if len(received) == 0 {
		p.t.Fatal("the connection ended without a reason")
	}
	last := received[len(received)-1]
	if last["type"] != "closing" || last["code"] != "expired" || last["message"] != "the token was revoked" || last["reconnect"] != true {
		p.t.Fatalf("the connection ended with %v", last)
	}
}

// expectPong checks that the connection is open.
func (p *testClient) expectPong() {
	p.t.Helper()
	p.send(`{"type":"ping","ref":9}`)
	p.expect(object{"type": "pong", "ref": 9})
}

// TestRevokeUser: connections with revoked tokens end on all servers, and the tokens are refused
// everywhere. Tokens that were issued later, and those of others, are not affected.
func TestRevokeUser(t *testing.T) {
	t.Parallel()
	for name, startAll := range threeBrokers(t, withTokens(t)) {
		t.Run(name, func(t *testing.T) {
			brokers := startAll()
			old, unknown := issued(t, "alice", time.Minute), signed(t, jwt.MapClaims{"sub": "alice"})
			var ending, staying []*testClient
			for n, i := range brokers {
				for transport, dial := range dialers {
					p := dial(t, i)
					p.connectToken(fmt.Sprint(n, clientName(transport)), []string{old, unknown}[n%2])
					ending = append(ending, p)
				}
			}
			cut := time.Now().Add(-30 * time.Second).UnixMilli()
			for client, token := range map[string]string{
				"new": issued(t, "alice", 0), "bob": issued(t, "bob", time.Minute), "at": signed(t, jwt.MapClaims{"sub": "alice", "iat": float64(cut) / 1000}),
			} {
				p := dialers["tcp"](t, brokers[2])
				p.connectToken(client, token)
				staying = append(staying, p)
			}
			status, answer := brokers[1].call(t, "POST", "/v1/users/alice/revoke", fmt.Sprintf(`{"before":%d}`, cut))
			if status != http.StatusOK || fmt.Sprint(answer["before"]) != fmt.Sprint(cut) || fmt.Sprint(answer["disconnected"]) != fmt.Sprint(len(ending)) || answer["pending"] != nil {
				t.Fatalf("%d %v", status, answer)
			}
			for _, p := range ending {
				p.expectRevoked()
			}
			for _, p := range staying {
				p.expectPong()
			}
			for n, i := range brokers {
				for transport, dial := range dialers {
					p := dial(t, i)
					p.send(`{"type":"connect","client":"again","token":%q}`, []string{old, unknown}[n%2])
					if e := p.expect(object{"type": "error", "code": "unauthorized", "message": "token: it was revoked"}); e["ref"] != nil {
						t.Errorf("%s: %v", transport, e)
					}
					p.expectRevoked()
				}
			}
			for _, p := range staying {
				p.expectPong()
			}
			if _, u := brokers[0].call(t, "GET", "/v1/users/alice", ""); fmt.Sprint(u["revoked"]) != fmt.Sprint(cut) {
				t.Errorf("the user is %v", u)
			}
			_, answer = brokers[2].call(t, "POST", "/v1/check", fmt.Sprintf(`{"token":%q,"channel":"news"}`, old))
			if answer["error"] != "token: it was revoked" {
				t.Errorf("check answers %v", answer)
			}
			_, answer = brokers[2].call(t, "POST", "/v1/users/alice/revoke", fmt.Sprintf(`{"before":%d}`, cut-10_000))
			if fmt.Sprint(answer["before"]) != fmt.Sprint(cut) { // the later time stays
				t.Errorf("%v", answer)
			}
		})
	}
}

// TestRevokeClient: only the tokens of one client are refused.
func TestRevokeClient(t *testing.T) {
	t.Parallel()
	for name, startAll := range threeBrokers(t, withTokens(t)) {
		t.Run(name, func(t *testing.T) {
			brokers := startAll()
			token := issued(t, "alice", time.Minute)
			phone, tablet := dialers["tcp"](t, brokers[0]), dialers["tcp"](t, brokers[1])
			phone.connectToken("phone", token)
			tablet.connectToken("tablet", token)
			status, answer := brokers[2].call(t, "POST", "/v1/clients/alice/phone/revoke", "")
			if status != http.StatusOK || fmt.Sprint(answer["disconnected"]) != "1" {
				t.Fatalf("%d %v", status, answer)
			}
			phone.expectRevoked()
			tablet.expectPong()
			phone = dialers["tcp"](t, brokers[1])
			phone.send(`{"type":"connect","client":"phone","token":%q}`, token)
			phone.expect(object{"type": "error", "code": "unauthorized"})
			for path, body := range map[string]string{
				"/v1/clients/tab-1/revoke": "", "/v1/users/alice/revoke": `{"before":1794225600}`, "/v1/users/a%20b/revoke": "",
				"/v1/clients/alice/phone/revoke": fmt.Sprintf(`{"before":%d}`, time.Now().Add(time.Hour).UnixMilli()),
				"/v1/users/bob/revoke":           `{"when":1}`,
			} {
				if status, answer := brokers[0].call(t, "POST", path, body); status != http.StatusBadRequest {
					t.Errorf("%s %s: %d %v", path, body, status, answer)
				}
			}
		})
	}
}

// TestRevokedTokenEndsNoConnection: a connect with a revoked token does not end the connection of
// the same client that has another token.
func TestRevokedTokenEndsNoConnection(t *testing.T) {
	s, _ := redisStore(t, shared.Client(t), testBeat)
	brokers := startThree(t, s, withTokens(t))
	brokers[0].call(t, "POST", "/v1/users/alice/revoke", fmt.Sprintf(`{"before":%d}`, time.Now().Add(-time.Minute).UnixMilli()))
	p := dialers["tcp"](t, brokers[0])
	p.connectToken("phone", issued(t, "alice", 0))
	for _, i := range brokers {
		thief := dialers["tcp"](t, i)
		thief.send(`{"type":"connect","client":"phone","token":%q}`, issued(t, "alice", time.Hour))
		thief.expect(object{"type": "error", "code": "unauthorized"})
		thief.expectRevoked()
	}
	brokers[1].push(t, `{"client":"alice/phone","data":1}`)
	p.expect(object{"type": "message", "data": 1})
}

// TestLostRevocation: the server that stored a revocation has told no other one. Each reads it at
// its next beat.
func TestLostRevocation(t *testing.T) {
	t.Parallel()
	s, _ := redisStore(t, shared.Client(t), testBeat)
	brokers := startThree(t, s, withTokens(t))
	var clients []*testClient
	for n, i := range brokers {
		p, other := dialers["tcp"](t, i), dialers["tcp"](t, i)
		p.connectToken(fmt.Sprint(n), issued(t, "alice", time.Minute))
		other.connectToken(fmt.Sprint("new-", n), issued(t, "alice", 0))
		clients = append(clients, p)
		t.Cleanup(other.expectPong)
	}
	if _, err := s.registry.Revoke(t.Context(), registry.Revocation{User: "alice", Before: time.Now().Add(-30 * time.Second).UnixMilli()}); err != nil {
		t.Fatal(err)
	}
	for _, p := range clients {
		p.expectRevoked()
	}
}

// revokingRegistry calls a function once, at a step of a connect.
type revokingRegistry struct {
	Registry
	checked, bound atomic.Pointer[func()] // after the store has answered
}

// once calls the function, unless it was called.
func once(f *atomic.Pointer[func()]) {
	if call := f.Swap(nil); call != nil {
		(*call)()
	}
}

// CheckTokens implements broker.Registry.
func (r *revokingRegistry) CheckTokens(ctx context.Context, list []registry.UserBinding) []error {
	errs := r.Registry.CheckTokens(ctx, list)
	once(&r.checked)
	return errs
}

// BindUsers implements broker.Registry.
func (r *revokingRegistry) BindUsers(ctx context.Context, list []registry.UserBinding) []error {
	errs := r.Registry.BindUsers(ctx, list)
	once(&r.bound)
	return errs
}

// TestRevokeDuringConnect: a revocation comes at each step of a connect and of a refresh.
func TestRevokeDuringConnect(t *testing.T) {
	for _, step := range []string{"checked", "bound", "refreshed"} {
		t.Run(step, func(t *testing.T) {
			s := memoryStore(queue.Options{})
			r := &revokingRegistry{Registry: s.registry}
			s.registry = r
			i := start(t, s, withTokens(t))
			revoke := func() {
				if status, answer := i.call(t, "POST", "/v1/users/alice/revoke", ""); status != http.StatusOK {
					t.Errorf("%d %v", status, answer)
				}
			}
			p := dialers["tcp"](t, i)
			switch step {
			case "checked":
				r.checked.Store(&revoke)
			case "bound":
				r.bound.Store(&revoke)
			case "refreshed": // to an older token: the revocation is for this one, and the connection has a newer one
				cut := time.Now().Add(-time.Minute).UnixMilli()
				p.connectToken("phone", issued(t, "alice", 0))
				revoke = func() { i.call(t, "POST", "/v1/users/alice/revoke", fmt.Sprintf(`{"before":%d}`, cut)) }
				r.checked.Store(&revoke)
				p.send(`{"type":"refresh","token":%q}`, issued(t, "alice", time.Hour))
				p.expectRevoked()
				return
			}
			p.send(`{"type":"connect","client":"phone","token":%q}`, issued(t, "alice", time.Minute))
			p.expectRevoked()
			await.True(t, "the client is not online", func() bool {
				_, u := i.call(t, "GET", "/v1/users/alice", "")
				return u["online"] == false
			})
		})
	}
}

// TestRefreshWithRevokedToken: the connection keeps its token, and a new one makes it outlive a
// revocation of the former.
func TestRefreshWithRevokedToken(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), withTokens(t))
	p := dialers["tcp"](t, i)
	p.connectToken("phone", issued(t, "alice", 10*time.Second))
	i.call(t, "POST", "/v1/users/alice/revoke", fmt.Sprintf(`{"before":%d}`, time.Now().Add(-time.Minute).UnixMilli()))
	p.send(`{"type":"refresh","token":%q}`, issued(t, "alice", time.Hour))
	p.expect(object{"type": "error", "code": "unauthorized", "message": "token: it was revoked"})
	p.send(`{"type":"refresh","token":%q}`, issued(t, "alice", time.Second))
	p.expect(object{"type": "refreshed"})
	_, answer := i.call(t, "POST", "/v1/users/alice/revoke", fmt.Sprintf(`{"before":%d}`, time.Now().Add(-5*time.Second).UnixMilli()))
	if fmt.Sprint(answer["disconnected"]) != "0" {
		t.Errorf("%v", answer)
	}
	p.expectPong()
}

// TestRevokedStream: streams of events end, do not open again, and acknowledge nothing.
func TestRevokedStream(t *testing.T) {
	for name, change := range sseServers {
		t.Run(name, func(t *testing.T) {
			i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
				withTokens(t)(o)
				if change != nil {
					change(o)
				}
			})
			query := "client=tab&token=" + url.QueryEscape(issued(t, "alice", time.Minute))
			s := openStream(t, i, query, "")
			s.expect("connected", object{"user": "alice"})
			i.push(t, `{"client":"alice/tab","data":1}`)
			s.expect("message", object{"data": 1})
			id := s.last
			i.call(t, "POST", "/v1/users/alice/revoke", "")
			s.expectEnd("expired", true)
			resp, body := i.requestSSE(t, "GET", query, id, nil)
			if resp.StatusCode != http.StatusUnauthorized || !strings.Contains(body, "revoked") {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
			resp, body = i.requestSSE(t, "POST", query, id, nil)
			if resp.StatusCode != http.StatusUnauthorized || !strings.Contains(body, "revoked") {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
			if _, c := i.call(t, "GET", "/v1/clients/alice/tab/queue", ""); fmt.Sprint(c["count"]) != "1" {
				t.Errorf("the queue is %v", c)
			}
		})
	}
}

// TestRevokeOpenBroker: an open broker has no tokens to revoke.
func TestRevokeOpenBroker(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	if status, answer := i.call(t, "POST", "/v1/users/alice/revoke", ""); status != http.StatusBadRequest {
		t.Errorf("%d %v", status, answer)
	}
}

// TestRevokeSurvives: a revocation outlives all brokers. Durable asks for a replica.
func TestRevokeSurvives(t *testing.T) {
	t.Parallel()
	s, _ := redisStore(t, shared.Client(t), testBeat)
	first := start(t, s, withTokens(t))
	first.awaitReady(t, http.StatusOK)
	token := issued(t, "alice", time.Minute)
	status, answer := first.call(t, "POST", "/v1/users/alice/revoke", `{"durable":true}`)
	if status != http.StatusServiceUnavailable { // no replica
		t.Errorf("%d %v", status, answer)
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	second := start(t, s, withTokens(t))
	second.awaitReady(t, http.StatusOK)
	p := dialers["tcp"](t, second)
	p.send(`{"type":"connect","client":"phone","token":%q}`, token)
	p.expect(object{"type": "error", "code": "unauthorized"})
}
