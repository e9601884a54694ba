package broker_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/queue"
)

func TestEveryKindOfPushArrives(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		p := dial(i)
		p.connect("phone", "alice")
		p.subscribe("news")
		sent := i.push(t, `{"channel":"news","data":{"n": 1}}`)
		p.expect(object{"type": "message", "channel": "news", "id": sent["id"], "data": "map[n:1]"})
		sent = i.push(t, `{"client":"alice/phone","data":[2]}`)
		p.expect(object{"type": "message", "channel": nil, "id": sent["id"], "data": "[2]"})
		i.push(t, `{"user":"alice","data":"three"}`)
		last := p.expect(object{"type": "message", "channel": nil, "data": "three"})
		p.send(`{"type":"ack","id":%v}`, last["id"])
		sent = i.push(t, `{"all":true,"data":4}`)
		p.expect(object{"type": "message", "channel": "$all", "id": sent["id"], "data": 4})
		p.send(`{"type":"publish","channel":"news","data":{"five":5},"ref":9}`)
		got := map[any]object{}
		for range 2 { // the answer and the message may arrive in either order
			o := p.receive()
			got[o["type"]] = o
		}
		if got["published"]["ref"] == nil || fmt.Sprint(got["published"]["id"]) != fmt.Sprint(got["message"]["id"]) {
			t.Fatalf("the answer and the message have different ids: %v", got)
		}
		p.close()
		await.True(t, "the client is offline", func() bool {
			_, u := i.call(t, "GET", "/v1/users/alice", "")
			return u["online"] == false
		})
	})
}

// TestAnswers: the answer to each message of a connected client.
func TestAnswers(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Limits.Channels = 2; o.Limits.Message = 1000 })
	const ok = ""
	table := []struct{ send, typ, code, contains string }{
		{`{"type":"ping","ref":7}`, "pong", ok, ""},
		{`{"type":"dance","ref":7}`, "error", "bad_request", "dance"},
		{`{"ref":7}`, "error", "bad_request", "type"},
		{`{"type":"connect","ref":7}`, "error", "bad_request", "already"},
		{`{"type":"subscribe","ref":7}`, "error", "bad_request", "channel"},
		{`{"type":"subscribe","channel":"a b","ref":7}`, "error", "bad_request", "byte 1"},
		{`{"type":"subscribe","channel":"a{b}","ref":7}`, "error", "bad_request", "byte 1"},
		{`{"type":"subscribe","channel":"` + strings.Repeat("x", 201) + `","ref":7}`, "error", "bad_request", "201 bytes"},
		{`{"type":"subscribe","channel":"$all","ref":7}`, "error", "forbidden", "system"},
		{`{"type":"subscribe","channel":"a","after":-1,"ref":7}`, "error", "bad_request", "after"},
		{`{"type":"subscribe","channel":5,"ref":7}`, "error", "bad_request", "channel"},
		{`{"type":"subscribe","channel":"a","ref":7}`, "subscribed", ok, ""},
		{`{"type":"subscribe","channel":"a","ref":7}`, "subscribed", ok, ""}, // again
		{`{"type":"subscribe","channel":"b","ref":7,"unknown":true}`, "subscribed", ok, ""},
		{`{"type":"subscribe","channel":"c","ref":7}`, "error", "rate_limited", "2 channels"},
		{`{"type":"unsubscribe","channel":"c","ref":7}`, "unsubscribed", ok, ""}, // it was not subscribed
		{`{"type":"unsubscribe","channel":"b","ref":7}`, "unsubscribed", ok, ""},
		{`{"type":"unsubscribe","channel":"b","ref":7}`, "unsubscribed", ok, ""}, // again
		{`{"type":"unsubscribe","channel":"$user:alice","ref":7}`, "unsubscribed", ok, ""},
		{`{"type":"unsubscribe","channel":"$user:","ref":7}`, "error", "bad_request", "user"},
		{`{"type":"unsubscribe","channel":"$all","ref":7}`, "error", "forbidden", "system"},
		{`{"type":"publish","channel":"z","ref":7}`, "error", "bad_request", "data"},
		{`{"type":"publish","channel":"z","data":"` + strings.Repeat("x", 950) + `","ref":7}`, "published", ok, ""},
		{`{"type":"history","channel":"z","ref":7}`, "history", ok, ""},
		{`{"type":"history","channel":"z","limit":1000,"ref":7}`, "error", "bad_request", "limit"},
		{`{"type":"ack","id":5,"ref":7}`, "error", "bad_request", "5"},
		{`{"type":"refresh","token":"x","ref":7}`, "error", "bad_request", "no tokens"},
		{`{"type":"request","data":1,"ref":7}`, "error", "unavailable", "Redis"},
	}
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		p := dial(i)
		p.connect("c", "")
		for _, row := range table {
			p.send("%s", row.send)
			got := p.expect(object{"type": row.typ, "ref": 7})
			if row.code != ok && (got["code"] != row.code || !strings.Contains(fmt.Sprint(got["message"]), row.contains)) {
				t.Errorf("%.80s: got %v, want %s with %q", row.send, got, row.code, row.contains)
			}
		}
		p.send(`{"type":"publish","channel":"z","data":"%s","ref":8}`, strings.Repeat("y", 2000))
		p.expect(object{"type": "error", "code": "too_large"})
		p.send(`{"type":"ping","ref":9}`)
		p.expect(object{"type": "pong", "ref": 9})
	})
}

// TestProtocolErrorsClose: these messages close the connection.
func TestProtocolErrorsClose(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	for name, message := range map[string]string{
		"no JSON":          `hello`,
		"not an object":    `[1]`,
		"no connect":       `{"type":"subscribe","channel":"a","ref":1}`,
		"bad client name":  `{"type":"connect","client":"a b","ref":1}`,
		"half a JSON":      `{"type":`,
		"nested too deep":  strings.Repeat(`[`, 70) + strings.Repeat(`]`, 70),
		"connect bad user": `{"type":"connect","user":"{x}","ref":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
				p := dial(i)
				p.send("%s", message)
				received := p.untilClosed()
				if len(received) != 2 || received[0]["type"] != "error" || received[1]["type"] != "closing" || received[1]["reconnect"] != false {
					t.Fatalf("received %v, want an error, and a closing that forbids to reconnect", received)
				}
			})
		})
	}
}

func TestMessagesBeforeConnectedAreQueued(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		p := dial(i)
		p.send(`{"type":"connect","client":"eager","ref":1}`)
		p.send(`{"type":"subscribe","channel":"a","ref":2}`)
		p.send(`{"type":"publish","channel":"a","data":1,"ref":3}`)
		p.expect(object{"type": "connected", "ref": 1})
		p.expect(object{"type": "subscribed", "ref": 2})
	})
}

func TestConnectInTheURL(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	for _, addr := range []string{i.HTTP, i.TCP} {
		p := dialWS(t, "ws://"+addr+"/ws?client=tab-1&secret="+url.QueryEscape(secretOf("tab-1")))
		p.expect(object{"type": "connected", "client": "tab-1", "secret": secretOf("tab-1")})
	}
}

func TestNewSessionSupersedesTheOld(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		old, next := dial(i), dial(i)
		old.connect("tab", "")
		next.connect("tab", "")
		received := old.untilClosed()
		if len(received) != 1 || received[0]["code"] != "superseded" || received[0]["reconnect"] != false {
			t.Fatalf("the old session received %v", received)
		}
		i.push(t, `{"client":"tab","data":1}`)
		got := next.expect(object{"type": "message", "data": 1})
		next.send(`{"type":"ack","id":%v}`, got["id"])
		next.send(`{"type":"ack","id":%d}`, int64(1)<<53) // larger than all ids that were sent
		next.expect(object{"type": "error", "code": "bad_request"})
		i.call(t, "POST", "/v1/clients/tab/disconnect", "{}")
		if received := next.untilClosed(); len(received) != 1 || received[0]["code"] != "disconnected" {
			t.Fatalf("disconnected by the backend, received %v", received)
		}
		await.True(t, "the tab is disconnected", func() bool {
			_, answer := i.call(t, "POST", "/v1/clients/tab/disconnect", "{}")
			return fmt.Sprint(answer["disconnected"]) == "0"
		})
	})
}

// TestLateConnectAttempt: a delayed connect of an earlier attempt does not supersede the connection
// of a later attempt.
func TestLateConnectAttempt(t *testing.T) {
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		i := start(t, memoryStore(queue.Options{}), nil)
		second, first := dial(i), dial(i)
		second.send(`{"type":"connect","client":"phone","user":"alice","instance":"app","attempt":2}`)
		second.expect(object{"type": "connected"})
		first.send(`{"type":"connect","client":"phone","user":"alice","instance":"app","attempt":1}`)
		if received := first.untilClosed(); len(received) != 1 || received[0]["code"] != "superseded" {
			t.Fatalf("the first attempt received %v", received)
		}
		i.push(t, `{"client":"alice/phone","data":1}`)
		second.expect(object{"type": "message", "data": 1})
	})
}
