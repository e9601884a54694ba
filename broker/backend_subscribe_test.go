package broker_test

import (
	"fmt"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"switchboard/broker"
	"switchboard/broker/auth"
	"switchboard/broker/namespace"
	"switchboard/queue"
)

// withClosedChannels returns a change of the options: no client may subscribe by itself.
func withClosedChannels(t *testing.T) func(*broker.Options) {
	return func(o *broker.Options) {
		o.Access.Keys, o.Access.Tokens = keys(t, keyOne), tokens(t, auth.Options{HS256: [][]byte{tokenSecret}})
		o.Access.Namespaces = rules(t, namespace.Rule{Name: "*", Subscribe: namespace.Grant})
		o.Timing.Beat = testBeat
	}
}

// pushAs pushes to a channel and returns the id.
func (i instance) pushAs(t *testing.T, channel, data string) any {
	t.Helper()
	status, body := i.callWithKey(t, keyOne, "POST", "/v1/push", `{"channel":"`+channel+`","data":`+data+`}`)
	if status != 200 {
		t.Fatal(status, body)
	}
	return decode(t, []byte(body))["results"].([]any)[0].(object)["id"]
}

// TestClaimSubscribes has a token that subscribes its connections, over each transport.
func TestClaimSubscribes(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), withClosedChannels(t))
	token := signed(t, jwt.MapClaims{"sub": "alice", "subscribe": []string{"news", "team:7"}})
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		p := dial(i)
		p.connectToken(clientName(t.Name()), token)
		for _, channel := range []string{"news", "team:7"} {
			if e := p.expect(object{"type": "subscribed", "channel": channel}); e["ref"] != nil || e["id"] == nil {
				t.Errorf("got %v", e)
			}
		}
		i.pushAs(t, "team:7", `"hi"`)
		p.expect(object{"type": "message", "channel": "team:7", "data": "hi"})
	})
}

// TestClaimedSubscriptionResumesElsewhere has a client that reconnects on another broker with its
// position, before and after the broker has subscribed it.
func TestClaimedSubscriptionResumesElsewhere(t *testing.T) {
	s, _ := redisStore(t, shared.Client(t), testBeat)
	one, two, three := start(t, s, withClosedChannels(t)), start(t, s, withClosedChannels(t)), start(t, s, withClosedChannels(t))
	token := signed(t, jwt.MapClaims{"sub": "alice", "subscribe": []string{"news"}})
	p := dialers["tcp"](t, one)
	p.connectToken("phone", token)
	p.expect(object{"type": "subscribed", "channel": "news"})
	seen := one.pushAs(t, "news", "1")
	p.expect(object{"type": "message", "channel": "news", "data": 1})

	missed := three.pushAs(t, "news", "2")
	q := dialers["tcp"](t, two)
	q.send(`{"type":"connect","client":"phone","token":%q}`, token)
	q.send(`{"type":"subscribe","ref":3,"channel":"news","after":%v}`, seen)
	q.expect(object{"type": "connected"})
	for {
		e := q.receive()
		if e["type"] == "subscribed" && fmt.Sprint(e["ref"]) == "3" && e["recovered"] == true {
			break
		}
		if e["type"] != "subscribed" && e["type"] != "message" {
			t.Fatalf("got %v", e)
		}
	}
	q.expect(object{"type": "message", "channel": "news", "id": missed, "data": 2})
	three.pushAs(t, "news", "3")
	q.expect(object{"type": "message", "channel": "news", "data": 3})
}
