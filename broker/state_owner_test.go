package broker_test

import (
	"context"
	"fmt"
	"testing"

	"switchboard/internal/await"
	"switchboard/internal/state"
	"switchboard/queue"
)

// subscribeState subscribes to a channel with its state and returns the page, of which there is
// one.
func (p *testClient) subscribeState(channel string) object {
	p.t.Helper()
	p.send(`{"type":"subscribe","channel":%q,"state":true,"ref":3}`, channel)
	p.expect(object{"type": "subscribed", "channel": channel, "ref": 3})
	return p.expect(object{"type": "state", "channel": channel, "first": true, "more": nil})
}

// setOwned sets a field that the client owns.
func (p *testClient) setOwned(channel, field string) {
	p.t.Helper()
	p.send(`{"type":"publish","channel":%q,"set":{%q:1},"own":true,"ref":4}`, channel, field)
	p.expect(object{"type": "message", "channel": channel})
	p.expect(object{"type": "published", "channel": channel, "ref": 4})
}

// TestStateOverAllTransports has clients on three servers change and follow one state.
func TestStateOverAllTransports(t *testing.T) {
	s, _ := redisStore(t, shared.Client(t), testBeat)
	brokers := startThree(t, s, nil)
	brokers[0].push(t, `{"channel":"a","set":{"x":1,"$$h":2}}`)
	var clients []*testClient
	for n, i := range brokers {
		for transport, dial := range dialers {
			p := dial(t, i)
			p.connect(fmt.Sprintf("%d-%s", n, clientName(transport)), "")
			if page := p.subscribeState("a"); len(page["fields"].(object)) != 1 {
				t.Fatalf("the page is %v", page)
			}
			clients = append(clients, p)
		}
	}
	for n, p := range clients {
		p.send(`{"type":"publish","channel":"a","set":{"x":%d},"data":%d,"ref":5}`, 10+n, n)
		sent := 0
		for _, other := range clients {
			for got := 0; got == 0; {
				e := other.receive()
				if e["type"] == "published" {
					sent++
					continue
				}
				if got++; fmt.Sprintf("%v %v %v", e["type"], e["set"], e["data"]) != fmt.Sprintf("message map[x:%d] %d", 10+n, n) {
					t.Fatalf("received %v", e)
				}
			}
		}
		if sent == 0 {
			p.expect(object{"type": "published", "ref": 5})
		}
	}
}

// TestShutdownStoresTheEndsOfOwners: subscribers on other servers learn that the owners are away.
func TestShutdownStoresTheEndsOfOwners(t *testing.T) {
	s, _ := redisStore(t, shared.Client(t), testBeat)
	brokers := startThree(t, s, nil)
	watcher, owner := dialers["tcp"](t, brokers[1]), dialers["tcp"](t, brokers[0])
	watcher.connect("watcher", "")
	owner.connect("owner", "")
	watcher.subscribeState("a")
	owner.subscribeState("a")
	owner.setOwned("a", "x")
	watcher.expect(object{"type": "message", "by": "owner"})
	if err := brokers[0].stop(); err != nil {
		t.Fatal(err)
	}
	if away := watcher.expect(object{"type": "message"}); away["away"].(object)["x"] == nil {
		t.Fatalf("received %v", away)
	}
	owner = dialers["tcp"](t, brokers[2])
	owner.connect("owner", "")
	owner.subscribeState("a")
	watcher.expect(object{"type": "message", "back": []any{"x"}})
	owner.send(`{"type":"unsubscribe","channel":"a","ref":6}`)
	owner.receive() // the change that the owner is back
	owner.expect(object{"type": "unsubscribed", "ref": 6})
	watcher.expect(object{"type": "message", "gone": object{"x": state.Left}})
}

// TestOwnersOfADeclaredDeadServer: a live server is declared dead, and the janitor ends the owners
// that are connected to it. Under its new id the server says that they are back.
func TestOwnersOfADeclaredDeadServer(t *testing.T) {
	t.Parallel()
	s, prefix := redisStore(t, shared.Client(t), testBeat)
	brokers := startThree(t, s, nil)
	watcher, owner := dialers["tcp"](t, brokers[1]), dialers["tcp"](t, brokers[0])
	watcher.connect("watcher", "")
	owner.connect("owner", "")
	watcher.subscribeState("a")
	owner.subscribeState("a")
	owner.setOwned("a", "x")
	watcher.expect(object{"type": "message", "by": "owner"})
	old := brokers[0].ID()
	c := shared.Client(t)
	await.True(t, "the server is declared dead between two beats", func() bool {
		if err := c.Del(t.Context(), prefix+"s_{"+old+"}").Err(); err != nil {
			t.Fatal(err)
		}
		dead, err := s.registry.DeclareDead(t.Context(), old)
		if err != nil {
			t.Fatal(err)
		}
		return dead
	})
	ended := queue.StateStep{Channel: "a", Kind: queue.ServerEnded, Conn: state.Connection{Server: old}}
	if o := s.queue.StepStates(t.Context(), []queue.StateStep{ended})[0]; o.Err != nil || o.Value.ID == 0 {
		t.Fatalf("the server's owners did not end: %+v", o)
	}
	if _, _, _, err := s.queue.Release(t.Context(), "owner", old); err != nil {
		t.Fatal(err)
	}
	if err := s.registry.Forget(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the owner is back", func() bool {
		o := s.queue.ReadStates(context.Background(), []queue.StateRead{{Channel: "a"}})[0]
		return o.Err == nil && len(o.Value.Fields) == 1 && o.Value.Fields[0].Away == 0 && brokers[0].ID() != old
	})
	if away := watcher.expect(object{"type": "message"}); away["away"] == nil {
		t.Fatalf("received %v", away)
	}
	watcher.expect(object{"type": "message", "back": []any{"x"}})
	owner.send(`{"type":"publish","channel":"a","set":{"x":2},"ref":7}`)
	for e := owner.receive(); e["type"] != "published"; e = owner.receive() {
		if e["type"] != "message" {
			t.Fatalf("received %v", e)
		}
	}
}
