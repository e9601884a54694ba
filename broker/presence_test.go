package broker_test

import (
	"fmt"
	"testing"
	"time"

	"switchboard/internal/await"
	"switchboard/queue"
)

// TestPresence: a watcher receives joins and leaves, and the member list, of clients on all
// servers.
func TestPresence(t *testing.T) {
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
		room := fmt.Sprint("room-", n)
		tab := dial(a)
		tab.connect("tab", "alice")
		tab.send(`{"type":"subscribe","channel":%q,"presence":true,"ref":2}`, room)
		tab.expect(object{"type": "subscribed", "channel": room, "ref": 2})

		phone := dial(b)
		phone.send(`{"type":"connect","client":"phone","user":"bob","info":{"mood":"fine"},"ref":1}`)
		phone.expect(object{"type": "connected"})
		phone.subscribe(room)
		tab.expect(object{"type": "join", "channel": room, "client": "bob/phone", "user": "bob", "info": map[string]any{"mood": "fine"}})

		members := func(names ...any) func() bool {
			return func() bool {
				_, body := b.call(t, "GET", "/v1/channels/"+room+"/presence", "")
				var clients []any
				for _, c := range body["clients"].([]any) {
					clients = append(clients, c.(object)["client"])
				}
				return fmt.Sprint(body["count"]) == fmt.Sprint(len(names)) && len(clients) == len(names)
			}
		}
		await.True(t, "both are members", members("alice/tab", "bob/phone"))
		phone.send(`{"type":"presence","channel":%q,"ref":3}`, room)
		phone.expect(object{"type": "presence", "channel": room, "ref": 3, "count": 2, "users": 2})

		phone.close()
		tab.expect(object{"type": "leave", "channel": room, "client": "bob/phone", "user": "bob"})
		await.True(t, "one is a member", members("alice/tab"))
		tab.send(`{"type":"unsubscribe","channel":%q,"ref":4}`, room)
		tab.expect(object{"type": "unsubscribed", "ref": 4})
		await.True(t, "the channel has no members", members())
		tab.close()
	})
}

// TestPresenceAddedLater: a second subscribe adds joins and leaves to the subscription.
func TestPresenceAddedLater(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	n := 0
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		n++
		room := fmt.Sprint("room-", n)
		tab := dial(i)
		tab.connect("tab", "")
		tab.subscribe(room)
		for range 2 {
			tab.send(`{"type":"subscribe","channel":%q,"presence":true,"ref":2}`, room)
			tab.expect(object{"type": "subscribed", "channel": room, "ref": 2})
		}
		phone := dial(i)
		phone.connect("phone", "")
		phone.subscribe(room)
		tab.expect(object{"type": "join", "channel": room, "client": "phone"})
		phone.send(`{"type":"subscribe","channel":%q,"ref":3}`, room) // this is not a second join
		phone.expect(object{"type": "subscribed", "ref": 3})
		phone.close()
		tab.expect(object{"type": "leave", "channel": room, "client": "phone"})
		tab.close()
	})
}

// TestFollowUser: a user is online when the first device connects, and offline when the last device
// has been gone for the grace period.
func TestFollowUser(t *testing.T) {
	t.Parallel()
	i := start(t, memoryStore(queue.Options{}), nil)
	var tabs []*testClient
	follow := func(dial func(*testing.T, instance) *testClient) *testClient {
		tab := dial(t, i)
		tab.connect(fmt.Sprint("tab-", len(tabs)), "alice")
		tab.send(`{"type":"subscribe","channel":"$user:bob","ref":2}`)
		tab.expect(object{"type": "subscribed", "channel": "$user:bob", "ref": 2})
		tabs = append(tabs, tab)
		return tab
	}
	online := object{"type": "join", "channel": "$user:bob", "user": "bob"}
	for _, dial := range dialers {
		follow(dial)
	}
	phone := dialers["tcp"](t, i)
	phone.connect("phone", "bob")
	for _, tab := range tabs {
		tab.expect(online)
	}
	for _, dial := range dialers {
		follow(dial).expect(online)
	}
	phone.close()
	for _, tab := range tabs {
		tab.expect(object{"type": "leave", "channel": "$user:bob", "user": "bob"})
		tab.send(`{"type":"unsubscribe","channel":"$user:bob","ref":3}`)
		tab.expect(object{"type": "unsubscribed", "channel": "$user:bob", "ref": 3})
	}
}
