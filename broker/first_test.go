package broker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"switchboard/broker"
	"switchboard/broker/delivery"
	"switchboard/internal/await"
	"switchboard/queue"
)

// TestFirst: after the first of a user's devices acknowledges a message, the others no longer get
// it, on any server.
func TestFirst(t *testing.T) {
	overRedis, _ := redisStore(t, shared.Client(t), testBeat)
	for name, s := range map[string]store{"memory": memoryStore(queue.Options{}), "redis": overRedis} {
		t.Run(name, func(t *testing.T) {
			here := start(t, s, nil)
			there := here
			if s.shared {
				there = start(t, s, nil)
			}
			phone, tablet, laptop := dialers["tcp"](t, here), dialers["websocket on the loop"](t, there), dialers["tcp"](t, there)
			phone.connect("phone", "alice")
			tablet.connect("tablet", "alice")
			laptop.connect("laptop", "alice")
			laptop.close()

			r := here.push(t, `{"user":"alice","data":"ring","first":true}`)
			if n := len(r["clients"].([]any)); n != 3 {
				t.Fatalf("the push went to %d devices, want 3", n)
			}
			there.push(t, `{"user":"alice","data":"mail"}`)
			ring := phone.expect(object{"type": "message", "data": "ring"})
			tablet.expect(object{"type": "message", "data": "ring"})
			phone.expect(object{"type": "message", "data": "mail"})
			tablet.expect(object{"type": "message", "data": "mail"})
			phone.send(`{"type":"ack","id":%v}`, ring["id"])
			one := "map[alice/laptop:1 alice/phone:1 alice/tablet:1]"
			await.True(t, one, func() bool {
				_, u := here.call(t, "GET", "/v1/users/alice", "")
				queued := map[any]any{}
				for _, c := range u["clients"].([]any) {
					queued[c.(object)["client"]] = c.(object)["queued"]
				}
				return fmt.Sprint(queued) == one
			})

			laptop = dialers["tcp"](t, here)
			laptop.connect("laptop", "alice")
			laptop.expect(object{"type": "message", "data": "mail"})
			tablet.close()
			tablet = dialers["tcp"](t, here)
			tablet.connect("tablet", "alice")
			mail := tablet.expect(object{"type": "message", "data": "mail"})
			tablet.send(`{"type":"ack","id":%v}`, mail["id"])
			here.push(t, `{"user":"alice","data":"more","first":true}`)
			for _, device := range []*testClient{phone, laptop, tablet} {
				device.expect(object{"type": "message", "data": "more"})
			}
		})
	}
}

// TestFirstRepeatedPush: a push that is repeated with its key also reaches new devices. Once
// acknowledged, it is withdrawn from those too.
func TestFirstRepeatedPush(t *testing.T) {
	overRedis, _ := redisStore(t, shared.Client(t), testBeat)
	for name, s := range map[string]store{"memory": memoryStore(queue.Options{}), "redis": overRedis} {
		t.Run(name, func(t *testing.T) {
			i := start(t, s, nil)
			queued := func(client string, want int) {
				t.Helper()
				await.True(t, fmt.Sprint(want, " messages queued for ", client), func() bool {
					_, u := i.call(t, "GET", "/v1/users/alice", "")
					return slices.ContainsFunc(u["clients"].([]any), func(c any) bool {
						return c.(object)["client"] == client && fmt.Sprint(c.(object)["queued"]) == fmt.Sprint(want)
					})
				})
			}
			phone := dialers["tcp"](t, i)
			phone.connect("phone", "alice")
			one, two := `{"user":"alice","data":1,"first":true,"key":"one"}`, `{"user":"alice","data":2,"first":true,"key":"two"}`
			i.push(t, one)
			phone.send(`{"type":"ack","id":%v}`, phone.expect(object{"type": "message", "data": 1})["id"])
			queued("alice/phone", 0)
			i.push(t, two)
			second := phone.expect(object{"type": "message", "data": 2})

			laptop := dialers["tcp"](t, i)
			laptop.connect("laptop", "alice")
			laptop.close()
			i.push(t, one)
			i.push(t, two)
			queued("alice/laptop", 2)
			phone.close()
			phone = dialers["tcp"](t, i)
			phone.connect("phone", "alice") // the phone has acknowledged message 1, so its connect withdraws that message from the laptop
			queued("alice/laptop", 1)
			phone.send(`{"type":"ack","id":%v}`, phone.expect(object{"type": "message", "data": 2, "id": second["id"]})["id"])
			queued("alice/laptop", 0)
		})
	}
}

// ackDeadlines records the calls of StoreOptions.SetAckDeadline.
type ackDeadlines struct {
	mu   sync.Mutex // guards the fields below
	seen []string
	err  error
}

func (w *ackDeadlines) set(_ context.Context, d delivery.AckDeadline) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var clients []string
	for _, c := range d.Clients {
		if c.ID == 0 {
			return errors.New("no id")
		}
		clients = append(clients, c.Client)
	}
	slices.Sort(clients)
	w.seen = append(w.seen, fmt.Sprintf("%s %v %s %s %v", d.User, clients, d.Data, d.Key, d.After))
	return w.err
}

// take returns the calls since the last take, sorted. Later calls return err.
func (w *ackDeadlines) take(err error) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen
	w.seen, w.err = nil, err
	slices.Sort(seen)
	return seen
}

// TestNotifyAfter: a push with notify_after is recorded before it is answered, over net/http and
// over fast push.
func TestNotifyAfter(t *testing.T) {
	w := &ackDeadlines{}
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Store.SetAckDeadline = w.set })
	for _, client := range []string{"phone", "laptop"} {
		dialers["tcp"](t, i).connect(client, "alice")
	}
	c := i.caller(t)
	for n := range 3 { // the first call is served by net/http
		check := func(want ...string) {
			t.Helper()
			if got := w.take(nil); !slices.Equal(got, want) {
				t.Errorf("call %d: recorded %q, want %q", n, got, want)
			}
		}
		push := func(status int, contains, body string) {
			t.Helper()
			c.expect(status, contains, "POST", "/v1/push", "", body)
		}
		push(200, `"alice/phone"`, `{"user":"alice","data":1,"notify_after":30}`)
		check("alice [alice/laptop alice/phone] 1  30s")
		push(200, `"id"`, `{"client":"alice/phone","data":{"a":1},"notify_after":1.5}`)
		check(` [alice/phone] {"a":1}  1.5s`)
		push(200, `"clients":[]`, `{"user":"unknown","data":2,"notify_after":3600,"key":"k"}`)
		check("unknown [] 2 k 1h0m0s")
		push(200, `"alice/phone"`, `{"user":"alice","data":1}`)
		push(200, `"id"`, `{"channel":"news","data":1}`)
		check()
		push(400, "only a push to users or clients", `{"channel":"news","data":1,"notify_after":30}`)
		push(400, "only a push to users or clients", `{"all":true,"data":1,"notify_after":30}`)
		push(400, "0.5 is not within 1 and 3600", `{"user":"alice","data":1,"notify_after":0.5}`)
		push(400, "not within", `{"user":"alice","data":1,"notify_after":3601}`)
		push(400, "notify_after", `{"user":"alice","data":1,"notify_after":"30"}`)
		push(400, "first: only a push to users", `{"client":"alice/phone","data":1,"first":true}`)
		push(400, "first: only a push to users", `{"channel":"news","data":1,"first":true}`)
		check()
		c.expect(200, `"duplicate"`, "POST", "/v1/push/batch", "", fmt.Sprintf(`{"messages":[
			{"client":"alice/phone","data":1,"notify_after":1,"key":"b%[1]d"},{"client":"alice/phone","data":1,"notify_after":1,"key":"b%[1]d"},
			{"users":["alice","bob"],"data":2,"notify_after":2,"first":true},{"client":"alice/phone","data":1}]}`, n))
		check(fmt.Sprintf(" [alice/phone] 1 b%d 1s", n), fmt.Sprintf(" [alice/phone] 1 b%d 1s", n), "alice [alice/laptop alice/phone] 2  2s", "bob [] 2  2s")

		w.take(errors.New("full"))
		key := fmt.Sprintf(`"key":"x%d"`, n)
		push(503, "stored, but without notify_after", `{"user":"alice","data":1,"notify_after":30,`+key+`}`)
		push(503, "stored, but without notify_after", `{"client":"alice/phone","data":1,"notify_after":30,`+strings.Replace(key, "x", "y", 1)+`}`)
		if seen := w.take(nil); len(seen) != 2 {
			t.Errorf("recorded %q", seen)
		}
		push(200, `"duplicate":true`, `{"user":"alice","data":1,"notify_after":30,`+key+`}`)
		check(fmt.Sprintf("alice [alice/laptop alice/phone] 1 x%d 30s", n))
	}
}

// TestNotifyAfterWithoutWebhooks: a push with notify_after is refused, and nothing is stored.
func TestNotifyAfterWithoutWebhooks(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	p := dialers["tcp"](t, i)
	p.connect("phone", "alice")
	c := i.caller(t)
	for range 3 {
		c.expect(400, "webhooks.url", "POST", "/v1/push", "", `{"user":"alice","data":1,"notify_after":30}`)
		c.expect(400, "webhooks.url", "POST", "/v1/push", "", `{"client":"alice/phone","data":1,"notify_after":30}`)
	}
	i.push(t, `{"user":"alice","data":2}`)
	p.expect(object{"type": "message", "data": 2})
}
