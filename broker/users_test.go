package broker_test

import (
	"fmt"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/queue"
	"switchboard/registry"
)

// TestSameDeviceOfTwoUsers: the user is a part of the client id, so the same device name of two
// users is two clients. The queue of an offline client stays.
func TestSameDeviceOfTwoUsers(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		alice, bob := dial(i), dial(i)
		alice.connect("tab", "alice")
		bob.connect("tab", "bob")
		alice.send(`{"type":"ping","ref":1}`)
		alice.expect(object{"type": "pong"})
		alice.close()
		await.True(t, "alice is offline", func() bool {
			_, u := i.call(t, "GET", "/v1/users/alice", "")
			return u["online"] == false
		})
		for _, full := range []string{"alice/tab", "bob/alice/tab"} {
			again := dial(i)
			again.send(`{"type":"connect","client":%q,"user":"bob","ref":1}`, full)
			if received := again.untilClosed(); len(received) != 2 || received[0]["code"] != "bad_request" {
				t.Fatalf("bob asks for %s and received %v", full, received)
			}
		}
		i.push(t, `{"user":"alice","data":"for alice"}`)
		i.push(t, `{"user":"bob","data":2}`)
		bob.expectAndAck(2)
		alice = dial(i)
		alice.send(`{"type":"connect","client":"alice/tab","user":"alice","ref":1}`) // the full id of the connected message
		alice.expect(object{"type": "connected", "client": "alice/tab", "user": "alice", "secret": nil, "queued": 1})
		alice.expectAndAck("for alice")
		bob.send(`{"type":"ping","ref":1}`)
		bob.expect(object{"type": "pong"})
		for path, want := range map[string]string{"alice%2Ftab": "1", "bob/tab": "1", "tab": "0"} {
			if _, answer := i.call(t, "POST", "/v1/clients/"+path+"/disconnect", ""); fmt.Sprint(answer["disconnected"]) != want {
				t.Errorf("disconnecting %s: %v, want %s", path, answer, want)
			}
		}
	})
}

// expectAndAck receives a message, acknowledges it, and waits until the broker has the
// acknowledgement.
func (p *testClient) expectAndAck(data any) {
	p.t.Helper()
	got := p.expect(object{"type": "message", "data": data})
	p.send(`{"type":"ack","id":%v}`, got["id"])
	p.send(`{"type":"ping","ref":2}`)
	p.expect(object{"type": "pong"})
}

// TestUserListsItsDevices: the list of a user's devices includes offline devices.
func TestUserListsItsDevices(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	phone, laptop := dialers["tcp"](t, i), dialers["websocket on the loop"](t, i)
	phone.connect("phone", "alice")
	laptop.connect("laptop", "alice")
	phone.close()
	want := "map[alice/laptop:true alice/phone:false]"
	await.True(t, want, func() bool {
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
	phone = dialers["tcp"](t, i)
	phone.connect("phone", "alice")
	phone.expect(object{"type": "message", "data": 1})
}

// TestOnlineWithTheLease: a user is online exactly while the client's server has a lease. The
// answer reads the lease; it does not wait for the next beat.
func TestOnlineWithTheLease(t *testing.T) {
	s, _ := redisStore(t, shared.Client(t), time.Minute)
	i := start(t, s, func(o *broker.Options) { o.Timing.Beat = time.Minute })
	i.awaitReady(t, 200)
	other, ctx := registry.Server{ID: "other"}, t.Context()
	checkOnline := func(online bool, when string) {
		t.Helper()
		status, answer := i.call(t, "POST", "/v1/users/query", `{"users":["alice","unknown"]}`)
		if want := fmt.Sprintf(`[map[online:%t user:alice] map[online:false user:unknown]]`, online); status != 200 || fmt.Sprint(answer["users"]) != want {
			t.Errorf("%s the answer is %d, %v, want %s", when, status, answer["users"], want)
		}
		status, answer = i.call(t, "GET", "/v1/users/alice", "")
		if status != 200 || answer["online"] != online {
			t.Errorf("%s alice is %v, want online %t", when, answer, online)
		}
	}
	bound := s.queue.BindClients(ctx, []queue.Claim{{Client: "alice/phone", User: "alice", Server: other.ID}})[0]
	err := bound.Err
	if err == nil {
		err = s.registry.BindUsers(ctx, []registry.UserBinding{{User: "alice", Binding: registry.Binding{Client: "alice/phone", Server: other.ID, Generation: bound.Value.Generation}}})[0]
	}
	if err == nil {
		err = s.registry.Join(ctx, other)
	}
	if err != nil {
		t.Fatal(err)
	}
	checkOnline(true, "with a lease")
	if err := s.registry.Leave(ctx, other.ID); err != nil {
		t.Fatal(err)
	}
	checkOnline(false, "without it")
}
