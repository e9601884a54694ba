package broker_test

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"testing"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/queue"
)

// twoBrokers runs a test over memory, with one broker that is given twice, and over Redis.
func twoBrokers(t *testing.T, test func(t *testing.T, a, b instance)) {
	t.Run("memory", func(t *testing.T) {
		i := start(t, memoryStore(queue.Options{}), nil)
		test(t, i, i)
	})
	t.Run("redis", func(t *testing.T) {
		s, _ := redisStore(t, shared.Client(t), testBeat)
		beat := func(o *broker.Options) { o.Timing.Beat = testBeat }
		a, b := start(t, s, beat), start(t, s, beat)
		await.True(t, "they see each other", func() bool { return len(a.Servers()) == 2 && len(b.Servers()) == 2 })
		a.awaitReady(t, http.StatusOK)
		b.awaitReady(t, http.StatusOK)
		test(t, a, b)
	})
}

// TestOnlineUsers: pages list each user once, with all clients, whichever broker has them.
func TestOnlineUsers(t *testing.T) {
	t.Parallel()
	twoBrokers(t, func(t *testing.T, a, b instance) {
		want := map[string]string{"amy": "[amy/phone amy/tab]", "bob": "[bob/phone]", "b/c": "[b/c/phone]"}
		connections := []*testClient{}
		for i, c := range [][2]string{{"amy", "tab"}, {"amy", "phone"}, {"bob", "phone"}, {"b/c", "phone"}, {"", "guest"}} {
			c1 := dialLines(t, net.Dialer{}, []instance{a, b}[i%2].TCP)
			c1.connect(c[1], c[0])
			connections = append(connections, c1)
		}
		if got := listUsers(t, b); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("online are %v, want %v", got, want)
		}
		await.True(t, "the number of users includes all", func() bool {
			_, o := a.call(t, "GET", "/v1/users?limit=0", "")
			return o["users"] == nil && fmt.Sprint(o["connections"]) == "5" && slices.Contains([]string{"3", "4"}, fmt.Sprint(o["count"]))
		})
		connections[2].close()
		delete(want, "bob")
		await.True(t, "bob is offline", func() bool { return fmt.Sprint(listUsers(t, a)) == fmt.Sprint(want) })
		if status, _ := a.call(t, "GET", "/v1/users?cursor=x", ""); status != http.StatusBadRequest {
			t.Errorf("a malformed cursor: %d", status)
		}
		if status, o := a.call(t, "GET", "/v1/users?cursor=zz/", ""); status != http.StatusOK || len(o["users"].([]any)) != 0 {
			t.Errorf("after the last server: %d %v", status, o)
		}
	})
}

// listUsers returns the clients of each user that is online. A user in two pages is an error.
func listUsers(t *testing.T, i instance) map[string]string {
	t.Helper()
	users, cursor := map[string]string{}, ""
	for {
		status, o := i.call(t, "GET", "/v1/users?limit=1&cursor="+cursor, "")
		if status != http.StatusOK {
			t.Fatal(status, o)
		}
		for _, u := range o["users"].([]any) {
			name, clients := u.(object)["user"].(string), u.(object)["clients"].([]any)
			list := make([]string, len(clients))
			for i, c := range clients {
				list[i] = c.(string)
			}
			slices.Sort(list)
			if users[name] != "" {
				t.Errorf("%s is in two pages", name)
			}
			users[name] = fmt.Sprint(list)
		}
		if o["cursor"] == nil {
			return users
		}
		cursor = o["cursor"].(string)
	}
}

// TestClientCall: every broker describes a connection with its channels.
func TestClientCall(t *testing.T) {
	twoBrokers(t, func(t *testing.T, a, b instance) {
		c := dialLines(t, net.Dialer{}, a.TCP)
		c.connect("phone", "amy")
		c.subscribe("news")
		c.subscribe("chat")
		for _, path := range []string{"/v1/clients/amy/phone", "/v1/clients/amy%2Fphone"} {
			_, o := b.call(t, "GET", path, "")
			if o["client"] != "amy/phone" || o["user"] != "amy" || o["online"] != true || o["server"] != a.ID() || fmt.Sprint(o["channels"]) != "[news chat]" || o["address"] == "" {
				t.Errorf("%s: %v", path, o)
			}
		}
		c.close()
		await.True(t, "the client is offline", func() bool {
			_, o := b.call(t, "GET", "/v1/clients/amy/phone", "")
			return o["online"] == false && o["channels"] == nil
		})
		if status, _ := b.call(t, "GET", "/v1/clients/amy/tab", ""); status != http.StatusNotFound {
			t.Errorf("an unknown client: %d", status)
		}
	})
}
