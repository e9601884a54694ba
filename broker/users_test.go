package broker_test

import (
	"fmt"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/queue"
	"switchboard/registry"
)

// TestDeviceOfAnotherUser: a client id belongs to the user it was last used by, until that one is
// offline with nothing waiting.
func TestDeviceOfAnotherUser(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	overAll(t, func(t *testing.T, dial func(instance) *peer) {
		alice := dial(i)
		alice.connect("tab", "alice")
		offline := func(p *peer, user string) {
			p.close()
			eventually(t, user+" is offline", func() bool {
				_, u := i.call(t, "GET", "/v1/users/"+user, "")
				return u["online"] == false
			})
		}
		refused := func(why string) {
			t.Helper()
			bob := dial(i)
			bob.say(`{"type":"connect","client":"tab","user":"bob","ref":1}`)
			if heard := bob.ends(); len(heard) != 2 || heard[0]["code"] != "forbidden" {
				t.Fatalf("bob takes alice's tab %s: heard %v", why, heard)
			}
		}
		refused("while she is online")
		offline(alice, "alice")
		i.push(t, `{"user":"alice","data":"for alice"}`)
		refused("while a message waits for her")

		alice = dial(i)
		alice.connect("tab", "alice")
		got := alice.expect(object{"type": "message", "data": "for alice"})
		alice.say(`{"type":"ack","id":%v}`, got["id"])
		alice.say(`{"type":"ping","ref":2}`)
		alice.expect(object{"type": "pong"})
		offline(alice, "alice")
		bob := dial(i)
		bob.connect("tab", "bob")
		if r := i.push(t, `{"user":"alice","data":1}`); len(r["clients"].([]any)) != 0 {
			t.Fatalf("alice is reached on %v, which is bob's by now", r["clients"])
		}
		i.push(t, `{"user":"bob","data":2}`)
		got = bob.expect(object{"type": "message", "data": 2})
		bob.say(`{"type":"ack","id":%v}`, got["id"])
		bob.say(`{"type":"ping","ref":2}`)
		bob.expect(object{"type": "pong"})
		offline(bob, "bob")
	})
}

// TestUserKnowsItsDevices: all of them, the offline ones too.
func TestUserKnowsItsDevices(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	phone, laptop := ways["tcp"](t, i), ways["websocket on the loop"](t, i)
	phone.connect("phone", "alice")
	laptop.connect("laptop", "alice")
	phone.close()
	want := "map[laptop:true phone:false]"
	eventually(t, want, func() bool {
		_, u := i.call(t, "GET", "/v1/users/alice", "")
		online := map[any]any{}
		for _, c := range u["clients"].([]any) {
			online[c.(object)["client"]] = c.(object)["online"]
		}
		return fmt.Sprint(online) == want && u["online"] == true
	})
	r := i.push(t, `{"user":"alice","data":1}`)
	if len(r["clients"].([]any)) != 2 {
		t.Fatalf("the push went to %v: the phone's queue must have it too", r["clients"])
	}
	laptop.expect(object{"type": "message", "data": 1})
	phone = ways["tcp"](t, i)
	phone.connect("phone", "alice")
	phone.expect(object{"type": "message", "data": 1})
}

// TestOnlineWithTheLease: whether a user is online follows the leases of this moment, not those of the last beat.
func TestOnlineWithTheLease(t *testing.T) {
	s, _ := redisStore(t, shared.Client(t), time.Minute)
	i := start(t, s, func(o *broker.Options) { o.Beat = time.Minute })
	i.ready(t, 200)
	other, ctx := registry.Server{ID: "other"}, t.Context()
	is := func(online bool, when string) {
		t.Helper()
		status, answer := i.call(t, "POST", "/v1/users/query", `{"users":["alice","nobody"]}`)
		if want := fmt.Sprintf(`[map[online:%t user:alice] map[online:false user:nobody]]`, online); status != 200 || fmt.Sprint(answer["users"]) != want {
			t.Errorf("%s the answer is %d, %v, want %s", when, status, answer["users"], want)
		}
		status, answer = i.call(t, "GET", "/v1/users/alice", "")
		if status != 200 || answer["online"] != online {
			t.Errorf("%s alice is %v, want online %t", when, answer, online)
		}
	}
	fence, err := s.queue.Bind(ctx, queue.Claim{Client: "phone", User: "alice", Server: other.ID})
	if err == nil {
		err = s.registry.BindUser(ctx, "alice", registry.Binding{Client: "phone", Server: other.ID, Generation: fence.Generation})
	}
	if err == nil {
		err = s.registry.Join(ctx, other)
	}
	if err != nil {
		t.Fatal(err)
	}
	is(true, "with a lease")
	if err := s.registry.Leave(ctx, other.ID); err != nil {
		t.Fatal(err)
	}
	is(false, "without it")
}
