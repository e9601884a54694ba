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
	overAll(t, func(t *testing.T, dial func(instance) *peer) {
		p := dial(i)
		p.connect("phone", "alice")
		p.subscribe("news")
		sent := i.push(t, `{"channel":"news","data":{"n": 1}}`)
		p.expect(object{"type": "message", "channel": "news", "id": sent["id"], "data": "map[n:1]"})
		sent = i.push(t, `{"client":"alice/phone","data":[2]}`)
		p.expect(object{"type": "message", "channel": nil, "id": sent["id"], "data": "[2]"})
		i.push(t, `{"user":"alice","data":"three"}`)
		last := p.expect(object{"type": "message", "channel": nil, "data": "three"})
		p.say(`{"type":"ack","id":%v}`, last["id"])
		sent = i.push(t, `{"all":true,"data":4}`)
		p.expect(object{"type": "message", "channel": "$all", "id": sent["id"], "data": 4})
		p.say(`{"type":"publish","channel":"news","data":{"five":5},"ref":9}`)
		got := map[any]object{}
		for range 2 { // the answer and the message come in either order
			o := p.hear()
			got[o["type"]] = o
		}
		if got["published"]["ref"] == nil || fmt.Sprint(got["published"]["id"]) != fmt.Sprint(got["message"]["id"]) {
			t.Fatalf("published and its message do not fit: %v", got)
		}
		p.close()
		await.True(t, "the client is offline", func() bool {
			_, u := i.call(t, "GET", "/v1/users/alice", "")
			return u["online"] == false
		})
	})
}

// TestAnswers is the table of what a connected client says, and hears.
func TestAnswers(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Limits.Channels = 2; o.Limits.MessageBytes = 1000 })
	const ok = ""
	table := []struct{ say, typ, code, about string }{
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
		{`{"type":"unsubscribe","channel":"c","ref":7}`, "unsubscribed", ok, ""}, // it was refused
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
	overAll(t, func(t *testing.T, dial func(instance) *peer) {
		p := dial(i)
		p.connect("c", "")
		for _, row := range table {
			p.say("%s", row.say)
			got := p.expect(object{"type": row.typ, "ref": 7})
			if row.code != ok && (got["code"] != row.code || !strings.Contains(fmt.Sprint(got["message"]), row.about)) {
				t.Errorf("%.80s: got %v, want %s about %q", row.say, got, row.code, row.about)
			}
		}
		p.say(`{"type":"publish","channel":"z","data":"%s","ref":8}`, strings.Repeat("y", 2000))
		p.expect(object{"type": "error", "code": "too_large"})
		p.say(`{"type":"ping","ref":9}`)
		p.expect(object{"type": "pong", "ref": 9})
	})
}

// TestProtocolErrorsClose is the table of what ends a connection.
func TestProtocolErrorsClose(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	for name, say := range map[string]string{
		"no JSON":          `hello`,
		"not an object":    `[1]`,
		"no connect":       `{"type":"subscribe","channel":"a","ref":1}`,
		"bad client name":  `{"type":"connect","client":"a b","ref":1}`,
		"half a JSON":      `{"type":`,
		"nested too deep":  strings.Repeat(`[`, 70) + strings.Repeat(`]`, 70),
		"connect bad user": `{"type":"connect","user":"{x}","ref":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			overAll(t, func(t *testing.T, dial func(instance) *peer) {
				p := dial(i)
				p.say("%s", say)
				heard := p.ends()
				if len(heard) != 2 || heard[0]["type"] != "error" || heard[1]["type"] != "closing" || heard[1]["reconnect"] != false {
					t.Fatalf("heard %v, want an error and a closing that says not to come back", heard)
				}
			})
		})
	}
}

func TestMessagesBeforeTheAnswerToConnectWait(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	overAll(t, func(t *testing.T, dial func(instance) *peer) {
		p := dial(i)
		p.say(`{"type":"connect","client":"eager","ref":1}`)
		p.say(`{"type":"subscribe","channel":"a","ref":2}`)
		p.say(`{"type":"publish","channel":"a","data":1,"ref":3}`)
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
	overAll(t, func(t *testing.T, dial func(instance) *peer) {
		old, next := dial(i), dial(i)
		old.connect("tab", "")
		next.connect("tab", "")
		heard := old.ends()
		if len(heard) != 1 || heard[0]["code"] != "superseded" || heard[0]["reconnect"] != false {
			t.Fatalf("the old session heard %v", heard)
		}
		i.push(t, `{"client":"tab","data":1}`)
		got := next.expect(object{"type": "message", "data": 1})
		next.say(`{"type":"ack","id":%v}`, got["id"])
		next.say(`{"type":"ack","id":%d}`, int64(1)<<53) // beyond what was sent
		next.expect(object{"type": "error", "code": "bad_request"})
		i.call(t, "POST", "/v1/clients/tab/disconnect", "{}")
		if heard := next.ends(); len(heard) != 1 || heard[0]["code"] != "disconnected" {
			t.Fatalf("disconnected by the backend, heard %v", heard)
		}
		await.True(t, "the tab is gone", func() bool {
			_, s := i.call(t, "GET", "/v1/servers", "")
			return s["servers"] != nil
		})
	})
}

// TestOvertakenAttempt: a connect that was stuck on its way does not take the client back from the connection
// that its program made instead.
func TestOvertakenAttempt(t *testing.T) {
	overAll(t, func(t *testing.T, dial func(instance) *peer) {
		i := start(t, memoryStore(queue.Options{}), nil)
		now, late := dial(i), dial(i)
		now.say(`{"type":"connect","client":"phone","user":"alice","instance":"app","attempt":2}`)
		now.expect(object{"type": "connected"})
		late.say(`{"type":"connect","client":"phone","user":"alice","instance":"app","attempt":1}`)
		if heard := late.ends(); len(heard) != 1 || heard[0]["code"] != "superseded" {
			t.Fatalf("the late one heard %v", heard)
		}
		i.push(t, `{"client":"alice/phone","data":1}`)
		now.expect(object{"type": "message", "data": 1})
	})
}
