package broker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"switchboard/broker"
	"switchboard/broker/namespace"
	"switchboard/client"
	"switchboard/internal/await"
	"switchboard/internal/redistest"
	"switchboard/queue"
)

// TestDurablePublishes: clients publish and update durably. While the replica is paused, the answer
// is an error with the id and the results, what was published arrives, and publishes that are not
// durable succeed.
func TestDurablePublishes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	replica := redistest.StartReplica(t, server)
	s, _ := redisStore(t, server.Client(t), testBeat)
	i := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	i.awaitReady(t, http.StatusOK)
	reader, writer := dialers["tcp"](t, i), dialers["tcp"](t, i)
	reader.connect("phone", "alice")
	reader.subscribeStateOfNew("room")
	writer.connect("tab", "bob")
	published := func(n int) object {
		t.Helper()
		writer.send(`{"type":"publish","ref":%d,"channel":"room","data":%d,"durable":true,"key":"m%d"}`, n, n, n)
		return writer.receive()
	}
	if e := published(1); e["type"] != "published" {
		t.Fatal(e)
	}
	reader.expect(object{"type": "message", "data": 1})

	if err := replica.Pause(); err != nil {
		t.Fatal(err)
	}
	unconfirmed := func(ref int) object {
		return object{"type": "error", "ref": ref, "channel": "room", "code": "unavailable"}
	}
	writer.send(`{"type":"publish","ref":2,"channel":"room","data":2,"durable":true,"key":"m2"}`)
	writer.send(`{"type":"publish","ref":3,"channel":"room","add":{"n":5},"durable":true,"key":"m3"}`)
	first := writer.expect(unconfirmed(2))
	stored := reader.expect(object{"type": "message", "data": 2})
	if first["id"] != stored["id"] || !strings.HasPrefix(first["message"].(string), "stored, but not confirmed by a replica") {
		t.Errorf("%v, want the id of %v", first, stored)
	}
	second := writer.expect(unconfirmed(3))
	change := reader.expect(object{"type": "message"})
	if second["id"] != change["id"] || fmt.Sprint(second["fields"]) != "map[n:5]" {
		t.Errorf("%v, want the id of %v and the result 5", second, change)
	}
	writer.send(`{"type":"publish","ref":4,"channel":"room","data":4}`)
	writer.expect(object{"type": "published", "ref": 4})
	reader.expect(object{"type": "message", "data": 4})

	if err := replica.Resume(); err != nil {
		t.Fatal(err)
	}
	var again object
	await.True(t, "the replica confirms", func() bool { again = published(2); return again["type"] == "published" })
	if again["id"] != first["id"] {
		t.Errorf("%v, want the id of %v", again, first)
	}
	i.push(t, `{"channel":"room","data":5}`)
	reader.expect(object{"type": "message", "data": 5}) // no message was delivered twice
}

// subscribeStateOfNew subscribes to a channel with its state, which is empty.
func (p *testClient) subscribeStateOfNew(channel string) {
	p.t.Helper()
	if page := p.subscribeState(channel); len(page["fields"].(object)) > 0 {
		p.t.Fatalf("the page is %v", page)
	}
}

// TestDurablePublishOfSDK: package client returns the id and the results together with
// ErrNotReplicated. There is no replica.
func TestDurablePublishOfSDK(t *testing.T) {
	t.Parallel()
	i, _, _ := startWithOwnRedis(t)
	i.awaitReady(t, http.StatusOK)
	c, err := client.New(client.Options{URLs: []string{"ws://" + i.HTTP + "/ws"}, User: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = c.Run(ctx) }) // it ends with ctx
	t.Cleanup(running.Wait)
	t.Cleanup(stop)
	id, err := c.Publish(t.Context(), "room", 1, client.Durable(), client.Key("k"))
	if !errors.Is(err, client.ErrNotReplicated) || id == 0 {
		t.Errorf("published %d: %v", id, err)
	}
	if again, err := c.Publish(t.Context(), "room", 1, client.Durable(), client.Key("k")); !errors.Is(err, client.ErrNotReplicated) || again != id {
		t.Errorf("published %d: %v, want %d", again, err, id)
	}
	done, err := c.Update(t.Context(), "room", client.Add("n", 2), client.Durable())
	if !errors.Is(err, client.ErrNotReplicated) || done.ID <= id || done.Numbers["n"] != 2 {
		t.Errorf("updated %+v: %v", done, err)
	}
	if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Code != client.Unavailable {
		t.Errorf("%v, want unavailable", err)
	}
	_, err = c.Update(t.Context(), "room", client.Set("n", 7), client.IfAbsent("n"), client.Durable())
	if refused, ok := errors.AsType[*client.Refusal](err); !ok || refused.Err.Code != client.Conflict {
		t.Errorf("%v, want a conflict", err)
	}
	if id, err := c.Publish(t.Context(), "room", 2); id <= done.ID || err != nil {
		t.Errorf("published %d: %v", id, err)
	}
}

// TestDurablePublishIsRefused: by a broker in memory, and without the right. Nothing is stored.
func TestDurablePublishIsRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules []namespace.Rule
		want  object
	}{
		{"in memory", nil, object{"type": "error", "code": "bad_request"}},
		{"without the right", []namespace.Rule{{
			Name: "*", Publish: namespace.Anyone, Subscribe: namespace.Anyone,
			Fields: []namespace.FieldRule{{Pattern: "*", Write: namespace.Anyone}},
		}}, object{"type": "error", "code": "forbidden", "message": "channel room: not allowed to wait for a replica: " +
			"namespace *: durable is open to the backend only"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
				if c.rules == nil {
					return
				}
				var err error
				if o.Access.Namespaces, err = namespace.New(c.rules); err != nil {
					t.Fatal(err)
				}
			})
			p := dialers["tcp"](t, i)
			p.connect("phone", "alice")
			p.subscribe("room")
			for _, message := range []string{`"data":1`, `"set":{"a":1},"data":1`} {
				p.send(`{"type":"publish","channel":"room",%s,"durable":true}`, message)
				p.expect(c.want)
			}
			p.send(`{"type":"publish","channel":"room","data":2,"durable":false}`)
			p.expect(object{"type": "message", "data": 2})
			p.expect(object{"type": "published"})
		})
	}
}
