package broker_test

import (
	"fmt"
	"testing"
	"time"

	"switchboard/internal/await"
)

// TestHere: members see the values that clients on all servers show, as events and in pages, until
// they end.
func TestHere(t *testing.T) {
	t.Parallel()
	s, _ := redisStore(t, shared.Client(t), 2*time.Second)
	a, b := start(t, s, nil), start(t, s, nil)
	a.awaitReady(t, 200)
	b.awaitReady(t, 200)
	await.True(t, "the servers see each other", func() bool {
		_, servers := a.call(t, "GET", "/v1/servers", "")
		_, others := b.call(t, "GET", "/v1/servers", "")
		return len(servers["servers"].([]any)) == 2 && len(others["servers"].([]any)) == 2
	})
	n := 0
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		n++
		room := fmt.Sprint("here-", n)
		tab := dial(a)
		tab.connect("tab", "alice")
		tab.send(`{"type":"subscribe","channel":%q,"presence":true,"ref":2}`, room)
		tab.expect(object{"type": "subscribed", "channel": room, "ref": 2})
		phone := dial(b)
		phone.connect("phone", "bob")
		phone.send(`{"type":"here","channel":%q,"data":{"x":4},"ref":3}`, room)
		phone.expect(object{"type": "error", "code": "forbidden", "ref": 3})
		phone.subscribe(room)
		tab.expect(object{"type": "join", "channel": room, "client": "bob/phone"})

		phone.send(`{"type":"here","channel":%q,"data":{"x": 4}}`, room)
		value := object{"type": "here", "channel": room, "client": "bob/phone", "user": "bob"}
		expect := func(data any) { value["data"] = data; tab.expect(value) }
		expect(object{"x": 4})
		tab.send(`{"type":"presence","channel":%q,"ref":4}`, room)
		tab.expect(object{"type": "presence", "ref": 4, "count": 2})
		for _, i := range []instance{a, b} {
			_, body := i.call(t, "GET", "/v1/channels/"+room+"/presence", "")
			if !containsValue(body, "bob/phone") {
				t.Errorf("a page has no value: %v", body)
			}
		}
		phone.send(`{"type":"here","channel":%q,"data":null}`, room)
		expect(nil)
		phone.send(`{"type":"here","channel":%q,"data":"typing"}`, room)
		expect("typing")
		phone.send(`{"type":"unsubscribe","channel":%q,"ref":5}`, room)
		phone.expect(object{"type": "unsubscribed", "ref": 5})
		e := tab.receive()
		if e["type"] == "here" && e["data"] == nil { // the end of the value may overtake the leave
			e = tab.receive()
		}
		if e["type"] != "leave" || e["client"] != "bob/phone" {
			t.Errorf("got %v, want a leave", e)
		}
		phone.close()
		tab.close()
	})
}

// containsValue reports whether a page shows a value of the client.
func containsValue(page object, client string) bool {
	for _, c := range page["clients"].([]any) {
		if member := c.(object); member["client"] == client {
			return fmt.Sprint(member["here"]) == "map[x:4]"
		}
	}
	return false
}
