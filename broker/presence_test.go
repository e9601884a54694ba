package broker_test

import (
	"fmt"
	"testing"
	"time"

	"switchboard/internal/await"
	"switchboard/queue"
)

// TestPresence: a client that asks is told who comes and goes, and who is there, on all instances alike.
func TestPresence(t *testing.T) {
	s, _ := redisStore(t, shared.Client(t), 2*time.Second)
	a, b := start(t, s, nil), start(t, s, nil)
	a.ready(t, 200)
	b.ready(t, 200)
	await.True(t, "they know each other", func() bool {
		_, servers := a.call(t, "GET", "/v1/servers", "")
		_, others := b.call(t, "GET", "/v1/servers", "")
		return len(servers["servers"].([]any)) == 2 && len(others["servers"].([]any)) == 2
	})
	n := 0
	overAll(t, func(t *testing.T, dial func(instance) *peer) {
		n++
		room := fmt.Sprint("room-", n)
		tab := dial(a)
		tab.connect("tab", "alice")
		tab.say(`{"type":"subscribe","channel":%q,"presence":true,"ref":2}`, room)
		tab.expect(object{"type": "subscribed", "channel": room, "ref": 2})

		phone := dial(b)
		phone.say(`{"type":"connect","client":"phone","user":"bob","info":{"mood":"fine"},"ref":1}`)
		phone.expect(object{"type": "connected"})
		phone.subscribe(room)
		tab.expect(object{"type": "join", "channel": room, "client": "bob/phone", "user": "bob", "info": map[string]any{"mood": "fine"}})

		there := func(names ...any) func() bool {
			return func() bool {
				_, body := b.call(t, "GET", "/v1/channels/"+room+"/presence", "")
				var clients []any
				for _, c := range body["clients"].([]any) {
					clients = append(clients, c.(object)["client"])
				}
				return fmt.Sprint(body["count"]) == fmt.Sprint(len(names)) && len(clients) == len(names)
			}
		}
		await.True(t, "both are there", there("alice/tab", "bob/phone"))
		phone.say(`{"type":"presence","channel":%q,"ref":3}`, room)
		phone.expect(object{"type": "presence", "channel": room, "ref": 3, "count": 2, "users": 2})

		phone.close()
		tab.expect(object{"type": "leave", "channel": room, "client": "bob/phone", "user": "bob"})
		await.True(t, "one is there", there("alice/tab"))
		tab.say(`{"type":"unsubscribe","channel":%q,"ref":4}`, room)
		tab.expect(object{"type": "unsubscribed", "ref": 4})
		await.True(t, "nobody is there", there())
		tab.close()
	})
}

// TestPresenceAddedLater by a second subscribe: the subscription goes on, with joins and leaves.
func TestPresenceAddedLater(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	n := 0
	overAll(t, func(t *testing.T, dial func(instance) *peer) {
		n++
		room := fmt.Sprint("room-", n)
		tab := dial(i)
		tab.connect("tab", "")
		tab.subscribe(room)
		for range 2 {
			tab.say(`{"type":"subscribe","channel":%q,"presence":true,"ref":2}`, room)
			tab.expect(object{"type": "subscribed", "channel": room, "ref": 2})
		}
		phone := dial(i)
		phone.connect("phone", "")
		phone.subscribe(room)
		tab.expect(object{"type": "join", "channel": room, "client": "phone"})
		phone.say(`{"type":"subscribe","channel":%q,"ref":3}`, room) // is no second join
		phone.expect(object{"type": "subscribed", "ref": 3})
		phone.close()
		tab.expect(object{"type": "leave", "channel": room, "client": "phone"})
		tab.close()
	})
}

// TestFollowUser: the first device anywhere makes a user online, and the last one that is gone for the grace offline.
func TestFollowUser(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	var tabs []*peer
	follow := func(dial func(*testing.T, instance) *peer) *peer {
		tab := dial(t, i)
		tab.connect(fmt.Sprint("tab-", len(tabs)), "alice")
		tab.say(`{"type":"subscribe","channel":"$user:bob","ref":2}`)
		tab.expect(object{"type": "subscribed", "channel": "$user:bob", "ref": 2})
		tabs = append(tabs, tab)
		return tab
	}
	comes := object{"type": "join", "channel": "$user:bob", "user": "bob"}
	for _, dial := range ways {
		follow(dial)
	}
	phone := ways["tcp"](t, i)
	phone.connect("phone", "bob")
	for _, tab := range tabs {
		tab.expect(comes)
	}
	for _, dial := range ways {
		follow(dial).expect(comes)
	}
	phone.close()
	for _, tab := range tabs {
		tab.expect(object{"type": "leave", "channel": "$user:bob", "user": "bob"})
		tab.say(`{"type":"unsubscribe","channel":"$user:bob","ref":3}`)
		tab.expect(object{"type": "unsubscribed", "channel": "$user:bob", "ref": 3})
	}
}
