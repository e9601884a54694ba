package broker_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"switchboard/broker"
	"switchboard/broker/auth"
	"switchboard/broker/namespace"
	"switchboard/internal/await"
	"switchboard/internal/slots"
	"switchboard/queue"
	"switchboard/registry"
)

// onlyByBackend returns a change of the options: only the backend subscribes clients to team:
// channels, clients may subscribe by themselves to open: channels, and the others are closed.
func onlyByBackend(t *testing.T) func(*broker.Options) {
	return func(o *broker.Options) {
		o.Access.Tokens = tokens(t, auth.Options{HS256: [][]byte{tokenSecret}})
		o.Access.Namespaces = rules(t, namespace.Rule{Name: "team:*"}, namespace.Rule{Name: "open:*", Subscribe: namespace.Users})
		o.Access.Anonymous = true
		o.Timing.Beat = testBeat
	}
}

// changeSubs makes a call and checks how many clients have applied it.
func (i instance) changeSubs(t *testing.T, path, body string, clients int) object {
	t.Helper()
	status, answer := i.call(t, "POST", "/v1/"+path, body)
	if status != http.StatusOK || fmt.Sprint(answer["clients"]) != fmt.Sprint(clients) || answer["pending"] != nil || answer["until"] == nil {
		t.Fatalf("%s %s: %d %v, want %d clients", path, body, status, answer, clients)
	}
	return answer
}

// pushData pushes to a channel.
func (i instance) pushData(t *testing.T, channel string, data any) object {
	t.Helper()
	return i.push(t, fmt.Sprintf(`{"channel":%q,"data":%v}`, channel, data))
}

// TestSubscribeByCall subscribes and unsubscribes the clients of a user, one client, and a client
// without a user, that are connected to several brokers over all transports.
func TestSubscribeByCall(t *testing.T) {
	t.Parallel()
	for name, startAll := range threeBrokers(t, onlyByBackend(t)) {
		t.Run(name, func(t *testing.T) {
			brokers := startAll()
			token := signed(t, jwt.MapClaims{"sub": "alice"})
			var clients []*testClient
			for n, i := range brokers {
				for transport, dial := range dialers {
					p := dial(t, i)
					p.connectToken(fmt.Sprint(clientName(transport), n), token)
					clients = append(clients, p)
				}
			}
			s := openStream(t, brokers[1], "client=tab&token="+url.QueryEscape(token), "")
			s.expect("connected", object{"user": "alice"})
			one, guest := dialers["tcp"](t, brokers[2]), dialers["tcp"](t, brokers[0])
			one.connectToken("one", token)
			guest.send(`{"type":"connect","client":"guest","secret":"known-to-this-tab-alone"}`)
			guest.expect(object{"type": "connected", "client": "guest"})

			brokers[1].changeSubs(t, "users/alice/subscribe", `{"channels":["team:7"]}`, len(clients)+2)
			brokers[1].changeSubs(t, "clients/alice/one/subscribe", `{"channels":["team:8"]}`, 1)
			brokers[1].changeSubs(t, "clients/guest/subscribe", `{"channels":["team:7"]}`, 1)
			brokers[0].pushData(t, "team:7", 1) // right after the answer
			s.expect("subscribed", object{"channel": "team:7"})
			s.expect("message", object{"channel": "team:7", "data": 1})
			for _, p := range append(clients, one, guest) {
				p.expect(object{"type": "subscribed", "channel": "team:7"})
				if p == one {
					p.expect(object{"type": "subscribed", "channel": "team:8"})
				}
				p.expect(object{"type": "message", "channel": "team:7", "data": 1})
			}

			brokers[2].changeSubs(t, "users/alice/unsubscribe", `{"channels":["team:7","team:8"]}`, len(clients)+2)
			brokers[0].changeSubs(t, "clients/guest/unsubscribe", `{"channels":["team:7"]}`, 1)
			brokers[0].pushData(t, "team:7", 2)
			s.expect("unsubscribed", object{"channel": "team:7", "code": "forbidden"})
			for _, p := range append(clients, one, guest) {
				p.expect(object{"type": "unsubscribed", "channel": "team:7", "code": "forbidden"})
				if p == one {
					p.expect(object{"type": "unsubscribed", "channel": "team:8", "code": "forbidden"})
				}
				p.send(`{"type":"subscribe","channel":"team:7"}`)
				p.expect(object{"type": "error", "code": "forbidden"})
			}
		})
	}
}

// TestSubscribeWhileAway has a client that is away, or whose broker was killed, when the backend
// subscribes and unsubscribes it. It connects to another broker.
func TestSubscribeWhileAway(t *testing.T) {
	t.Parallel()
	for name, startAll := range threeBrokers(t, onlyByBackend(t)) {
		t.Run(name, func(t *testing.T) {
			brokers := startAll()
			token := signed(t, jwt.MapClaims{"sub": "alice"})
			connect := func(n int, more string) *testClient {
				p := dialers["tcp"](t, brokers[n])
				p.send(`{"type":"connect","client":"phone","token":%q}`+more, token)
				p.expect(object{"type": "connected"})
				return p
			}
			brokers[0].pushData(t, "team:7", 1)
			brokers[0].changeSubs(t, "users/alice/subscribe", `{"channels":["team:7"],"after":0}`, 0)
			p := connect(1, "")
			p.expect(object{"type": "subscribed", "channel": "team:7"})
			seen := p.expect(object{"type": "message", "channel": "team:7", "data": 1})["id"]
			p.send(`{"type":"subscribe","channel":"open:1"}`)
			p.expect(object{"type": "subscribed", "channel": "open:1"})
			p.close()
			await.True(t, "the client is offline", func() bool {
				_, u := brokers[0].call(t, "GET", "/v1/users/alice", "")
				return u["online"] == false
			})

			// It resumes elsewhere.
			missed := brokers[0].pushData(t, "team:7", 2)["id"]
			p = connect(2, "\n"+fmt.Sprintf(`{"type":"subscribe","ref":3,"channel":"team:7","after":%v}`, seen))
			p.expect(object{"type": "subscribed", "channel": "team:7", "ref": 3, "recovered": true})
			p.expect(object{"type": "message", "id": missed, "data": 2})
			p.close()
			await.True(t, "the client is offline", func() bool {
				_, u := brokers[0].call(t, "GET", "/v1/users/alice", "")
				return u["online"] == false
			})

			brokers[2].changeSubs(t, "users/alice/unsubscribe", `{"channels":["team:7","open:1"]}`, 0)
			p = connect(0, "\n"+fmt.Sprintf(`{"type":"subscribe","ref":3,"channel":"team:7","after":%v}`, seen)+
				"\n"+fmt.Sprintf(`{"type":"subscribe","ref":4,"channel":"open:1","after":%v}`, missed))
			p.expect(object{"type": "error", "ref": 3, "code": "forbidden"})
			p.expect(object{"type": "error", "ref": 4, "code": "forbidden"})
			p.send(`{"type":"subscribe","ref":5,"channel":"open:1"}`)
			p.expect(object{"type": "subscribed", "ref": 5})
		})
	}
}

// TestLostSubscription: the broker that stored the change ended before it told another one. Each
// reads it at its next beat.
func TestLostSubscription(t *testing.T) {
	t.Parallel()
	s, _ := redisStore(t, shared.Client(t), testBeat)
	brokers := startThree(t, s, onlyByBackend(t))
	p, guest := dialers["tcp"](t, brokers[1]), dialers["tcp"](t, brokers[2])
	p.connectToken("phone", signed(t, jwt.MapClaims{"sub": "alice"}))
	guest.send(`{"type":"connect","client":"guest","secret":"known-to-this-tab-alone"}`)
	guest.expect(object{"type": "connected"})
	for _, kind := range []registry.SubscriptionKind{registry.Subscribed, registry.Unsubscribed} {
		for _, c := range []registry.SubscriptionChange{{User: "alice"}, {Client: "guest"}} {
			c.Channels, c.Kind, c.After = []string{"team:7"}, kind, -1
			if _, err := s.registry.Subscribe(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range []*testClient{p, guest} {
			p.expect(object{"type": map[registry.SubscriptionKind]string{'+': "subscribed", '-': "unsubscribed"}[kind], "channel": "team:7"})
		}
	}
}

// TestSubscriptionSurvivesLoss: the store loses the lists, as in a failover. The brokers that hold
// the clients restore them.
func TestSubscriptionSurvivesLoss(t *testing.T) {
	rdb := shared.Client(t)
	s, prefix := redisStore(t, rdb, testBeat)
	failedOver := make(chan slots.Set)
	i := start(t, s, func(o *broker.Options) {
		onlyByBackend(t)(o)
		o.Store.Changed = failedOver
	})
	i.awaitReady(t, http.StatusOK)
	p := dialers["tcp"](t, i)
	p.connectToken("phone", signed(t, jwt.MapClaims{"sub": "alice"}))
	i.changeSubs(t, "users/alice/subscribe", `{"channels":["team:7"]}`, 1)
	i.changeSubs(t, "clients/alice/phone/subscribe", `{"channels":["team:8"]}`, 1)
	keys := []string{prefix + "u_s_{alice}", prefix + "u_s_{alice}:alice/phone"}
	for _, key := range keys {
		if ttl := rdb.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > 24*time.Hour {
			t.Errorf("%s ends in %v", key, ttl)
		}
		if err := rdb.Del(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}
	}
	failedOver <- slots.All()
	await.True(t, "the lists are restored", func() bool { return rdb.Exists(t.Context(), keys...).Val() == 2 })
	p.expect(object{"type": "subscribed", "channel": "team:7"})
	p.expect(object{"type": "subscribed", "channel": "team:8"})
	p.expectPong()
}

// TestSubscribeCallRefused has calls that change nothing.
func TestSubscribeCallRefused(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), onlyByBackend(t))
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"users/alice/subscribe", ``, 400},
		{"users/alice/subscribe", `{}`, 400},
		{"users/alice/subscribe", `{"channels":null}`, 400},
		{"users/alice/subscribe", `{"channels":[]}`, 400},
		{"users/alice/subscribe", `{"channels":[null]}`, 400},
		{"users/alice/subscribe", `{"channels":["team:7",5]}`, 400},
		{"users/alice/subscribe", `{"channels":"team:7"}`, 400},
		{"users/alice/subscribe", `{"channels":["team:7"],"channel":"x"}`, 400},
		{"users/alice/subscribe", `{"channels":["team 7"]}`, 400},
		{"users/alice/subscribe", `{"channels":["team:7"],"after":-1}`, 400},
		{"users/alice/subscribe", `{"channels":["team:7"],"after":"0"}`, 400},
		{"users/alice/subscribe", `{"channels":["team:7"],"after":1.5}`, 400},
		{"users/alice/subscribe", `{"channels":["team:7","team:8"],"after":5}`, 400},
		{"users/alice/subscribe", `{"channels":["team:7","closed"]}`, 403},
		{"users/alice/subscribe", `{"channels":["team:*"]}`, 403},
		{"users/alice/subscribe", `{"channels":["$all"]}`, 403},
		{"users/a%20b/subscribe", `{"channels":["team:7"]}`, 400},
		{"clients/a%20b/subscribe", `{"channels":["team:7"]}`, 400},
		{"users/alice/unsubscribe", `{"channels":["team:7"],"after":0}`, 400},
		{"users/alice/unsubscribe", `{"channels":["$all"]}`, 403},
		{"users/alice/unsubscribe", `{"channels":["closed"]}`, 200}, // the rules may have changed
		{"users/alice/subscribe", `{"channels":["team:7"],"after":null}`, 200},
	} {
		if status, answer := i.call(t, "POST", "/v1/"+c.path, c.body); status != c.status {
			t.Errorf("%s %s: %d %v, want %d", c.path, c.body, status, answer, c.status)
		}
	}
	for n := range registry.MaxSubscriptions - 1 {
		i.changeSubs(t, "users/alice/subscribe", fmt.Sprintf(`{"channels":["team:%d"]}`, 100+n), 0)
	}
	if status, answer := i.call(t, "POST", "/v1/users/alice/subscribe", `{"channels":["team:9"]}`); status != http.StatusRequestEntityTooLarge {
		t.Errorf("one too many: %d %v", status, answer)
	}
	p := dialers["tcp"](t, i)
	p.connectToken("phone", signed(t, jwt.MapClaims{"sub": "alice"}))
	for range registry.MaxSubscriptions {
		p.expect(object{"type": "subscribed"})
	}
}

// slowLists fails to read lists while failing is set.
type slowLists struct {
	Registry
	failing atomic.Bool
}

func (r *slowLists) Subscriptions(ctx context.Context, list []registry.Subscriber) []registry.SubscriptionsOutcome {
	if !r.failing.Load() {
		return r.Registry.Subscriptions(ctx, list)
	}
	out := make([]registry.SubscriptionsOutcome, len(list))
	for i := range out {
		out[i].Err = errAnswerLost
	}
	return out
}

// TestSubscribePending: a server that cannot read the lists counts as pending, and follows.
func TestSubscribePending(t *testing.T) {
	t.Parallel()
	s, _ := redisStore(t, shared.Client(t), testBeat)
	slow := &slowLists{Registry: s.registry}
	other := s
	other.registry = slow
	one, two := start(t, s, onlyByBackend(t)), start(t, other, onlyByBackend(t))
	for _, i := range []instance{one, two} {
		await.True(t, "both see each other", func() bool { return len(i.Servers()) == 2 })
	}
	p := dialers["tcp"](t, two)
	p.connectToken("phone", signed(t, jwt.MapClaims{"sub": "alice"}))
	slow.failing.Store(true)
	status, answer := one.call(t, "POST", "/v1/users/alice/subscribe", `{"channels":["team:7"]}`)
	if status != http.StatusOK || fmt.Sprint(answer["pending"]) != "1" || fmt.Sprint(answer["clients"]) != "0" {
		t.Errorf("%d %v", status, answer)
	}
	slow.failing.Store(false)
	p.expect(object{"type": "subscribed", "channel": "team:7"})
}

// TestClaimSubscribesStream has a stream whose token subscribes it, over both servers of streams.
func TestClaimSubscribesStream(t *testing.T) {
	for name, change := range sseServers {
		t.Run(name, func(t *testing.T) {
			i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
				onlyByBackend(t)(o)
				if change != nil {
					change(o)
				}
			})
			token := signed(t, jwt.MapClaims{"sub": "alice", "subscribe": []string{"team:7", "closed"}})
			query := "client=tab&token=" + url.QueryEscape(token)
			s := openStream(t, i, query, "")
			s.expect("connected", object{"user": "alice"})
			s.expect("subscribed", object{"channel": "team:7"})
			s.expect("unsubscribed", object{"channel": "closed", "code": "forbidden"})
			i.pushData(t, "team:7", 1)
			s.expect("message", object{"channel": "team:7", "data": 1})
			s.close()

			// A stream that names the channel resumes it.
			s = openStream(t, i, "channel=team:7&"+query, "")
			s.expect("connected", object{})
			s.expect("subscribed", object{"channel": "team:7"})
			s.expect("unsubscribed", object{"channel": "closed"})
			last := s.last
			s.close()
			i.pushData(t, "team:7", 2)
			s = openStream(t, i, "channel=team:7&"+query, last)
			s.expect("connected", object{})
			s.expect("subscribed", object{"channel": "team:7", "recovered": true})
			s.expect("message", object{"channel": "team:7", "data": 2})
		})
	}
}
