package broker_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/broker"
	"switchboard/broker/namespace"
	"switchboard/internal/await"
	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
	"switchboard/queue"
)

const testBeat = 200 * time.Millisecond

// startThree runs three brokers over one store and waits until they are ready.
func startThree(t *testing.T, s store, change func(*broker.Options)) []instance {
	t.Helper()
	list := make([]instance, 3)
	for n := range list {
		list[n] = start(t, s, func(o *broker.Options) {
			o.Name, o.Timing.Beat = fmt.Sprint("b", n), testBeat
			if change != nil {
				change(o)
			}
		})
	}
	for _, i := range list {
		i.awaitReady(t, http.StatusOK)
		await.True(t, "all three see each other", func() bool { return len(i.Servers()) == 3 })
	}
	return list
}

// threeBrokers returns functions that start three brokers over each store. In memory they are the
// same one.
func threeBrokers(t *testing.T, change func(*broker.Options)) map[string]func() []instance {
	cluster := redistest.StartCluster(t, 3)
	return map[string]func() []instance{
		"memory": func() []instance {
			i := start(t, memoryStore(queue.Options{}), change)
			return []instance{i, i, i}
		},
		"redis": func() []instance {
			s, _ := redisStore(t, shared.Client(t), testBeat)
			return startThree(t, s, change)
		},
		"cluster": func() []instance {
			s, _ := redisStore(t, cluster.Client(t), testBeat)
			return startThree(t, s, change)
		},
	}
}

func TestAnyServerReachesEveryClient(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	for name, client := range map[string]redis.UniversalClient{"one Redis": shared.Client(t), "a Cluster": cluster.Client(t)} {
		t.Run(name, func(t *testing.T) {
			s, _ := redisStore(t, client, testBeat)
			brokers := startThree(t, s, nil)
			var clients []*testClient
			for n, i := range brokers {
				for transport, dial := range dialers {
					p := dial(t, i)
					p.connect(fmt.Sprintf("%d-%s", n, clientName(transport)), fmt.Sprint("user", n))
					p.subscribe("news")
					clients = append(clients, p)
				}
			}
			for n, i := range brokers {
				r := i.push(t, fmt.Sprintf(`{"channel":"news","data":%d}`, n))
				if fmt.Sprint(r["servers"]) != "3" {
					t.Fatalf("servers is %v, want 3", r["servers"])
				}
				for _, p := range clients {
					p.expect(object{"type": "message", "channel": "news", "id": r["id"], "data": n})
				}
				i.push(t, `{"all":true,"data":"all"}`)
				for _, p := range clients {
					p.expect(object{"type": "message", "channel": "$all"})
				}
				for target := range brokers {
					r := i.push(t, fmt.Sprintf(`{"user":"user%d","data":"you"}`, target))
					if len(r["clients"].([]any)) != len(dialers) {
						t.Fatalf("user%d has %v, want one client per transport", target, r["clients"])
					}
					for _, p := range clients[target*len(dialers) : (target+1)*len(dialers)] {
						p.expect(object{"type": "message", "channel": nil, "data": "you"})
					}
				}
			}
			_, ch := brokers[0].call(t, "GET", "/v1/channels/news", "")
			if fmt.Sprintf("%v %v %v", ch["subscribers"], ch["servers"], ch["messages"]) != "9 3 3" {
				t.Fatalf("the channel is %v", ch)
			}
			_, list := brokers[1].call(t, "GET", "/v1/channels?prefix=ne", "")
			if fmt.Sprint(list["channels"]) != "[map[channel:news subscribers:9]]" {
				t.Fatalf("the channels are %v", list)
			}
		})
	}
}

func TestClientMovesToAnotherServer(t *testing.T) {
	s, _ := redisStore(t, shared.Client(t), testBeat)
	brokers := startThree(t, s, nil)
	old := dialers["tcp"](t, brokers[0])
	old.connect("phone", "alice")
	brokers[2].push(t, `{"user":"alice","data":1}`)
	old.expect(object{"type": "message", "data": 1})

	next := dialers["tcp"](t, brokers[1])
	next.connect("phone", "alice")
	if received := old.untilClosed(); len(received) != 1 || received[0]["code"] != "superseded" {
		t.Fatalf("the old session received %v", received)
	}
	next.expect(object{"type": "message", "data": 1}) // it was not acknowledged
	brokers[0].push(t, `{"client":"alice/phone","data":2}`)
	last := next.expect(object{"type": "message", "data": 2})
	next.send(`{"type":"ack","id":%v}`, last["id"])
	await.True(t, "both are acknowledged, and the phone is on the second server", func() bool {
		_, u := brokers[2].call(t, "GET", "/v1/users/alice", "")
		c := u["clients"].([]any)[0].(object)
		return u["online"] == true && c["server"] == brokers[1].ID() && fmt.Sprint(c["queued"]) == "0"
	})
	status, r := brokers[2].call(t, "POST", "/v1/users/alice/disconnect", `{}`)
	if status != 200 || fmt.Sprint(r["disconnected"]) != "1" {
		t.Fatalf("disconnect: %d %v", status, r)
	}
	if received := next.untilClosed(); len(received) != 1 || received[0]["code"] != "disconnected" {
		t.Fatalf("disconnected, received %v", received)
	}
}

// TestFaultyHints: if hints are lost, repeated or reordered, messages still arrive once and in
// order.
func TestFaultyHints(t *testing.T) {
	t.Parallel()
	for fault, n := range map[string]int{"drop": 3, "mangle": 100} {
		t.Run(fault, func(t *testing.T) {
			s, _ := redisStore(t, shared.Client(t), testBeat)
			brokers := startThree(t, s, func(o *broker.Options) { o.Links.HintFault = fault })
			p := dialers["tcp"](t, brokers[0])
			p.connect("phone", "")
			p.subscribe("news")
			for i := range n {
				brokers[1].push(t, fmt.Sprintf(`{"channel":"news","data":%d}`, i))
				brokers[2].push(t, fmt.Sprintf(`{"client":"phone","data":%d}`, i))
			}
			next := map[any]int{}
			for range 2 * n {
				m := p.receive()
				if queue := m["channel"]; fmt.Sprint(m["data"]) == fmt.Sprint(next[queue]) {
					next[queue]++
				} else {
					t.Fatalf("received %v, want %d", m, next[queue])
				}
			}
		})
	}
}

func TestBackendWritesToTheStore(t *testing.T) {
	s, prefix := redisStore(t, shared.Client(t), testBeat)
	brokers := startThree(t, s, nil)
	p := dialers["websocket on the loop"](t, brokers[0])
	p.connect("phone", "")
	p.subscribe("news")
	at := id(t, brokers[0].push(t, `{"channel":"news","data":0}`)["id"])
	p.expect(object{"type": "message", "id": at})

	c := shared.Client(t)
	if err := c.ZAdd(t.Context(), prefix+"mq_ch_{news}",
		redis.Z{Score: float64(at + 1), Member: "malformed"},
		redis.Z{Score: float64(at + 2), Member: fmt.Sprintf(`%d:{"by":"hand"}`, at+2)}).Err(); err != nil {
		t.Fatal(err)
	}
	if status, r := brokers[1].call(t, "POST", "/v1/notify", `{"channels":["news"]}`); status != 200 {
		t.Fatalf("notify: %d %v", status, r)
	}
	p.expect(object{"type": "message", "channel": "news", "id": at + 2})
	next := id(t, brokers[2].push(t, `{"channel":"news","data":1}`)["id"])
	if next <= at+2 {
		t.Fatalf("id %d was given after %d", next, at+2)
	}
	p.expect(object{"type": "message", "id": next})

	if err := c.RPush(t.Context(), prefix+"mq_c_{phone}", fmt.Sprintf(`%d:"list"`, at)).Err(); err != nil {
		t.Fatal(err)
	}
	brokers[1].call(t, "POST", "/v1/notify", `{"clients":["phone"]}`)
	p.expect(object{"type": "message", "channel": nil, "id": at, "data": "list"})
}

func TestRequestAndReply(t *testing.T) {
	s, prefix := redisStore(t, shared.Client(t), testBeat)
	brokers := startThree(t, s, func(o *broker.Options) { o.Requests.Queues, o.Requests.From = 1, namespace.Anyone })
	p := dialers["tcp"](t, brokers[0])
	p.connect("phone", "alice")
	p.send(`{"type":"request","data":{"q":1}}`)
	p.expect(object{"type": "error", "code": "bad_request"}) // no ref
	p.send(`{"type":"request","data":{"q":1},"ref":7}`)
	p.expect(object{"type": "accepted", "ref": 7})
	raw, err := shared.Client(t).LPop(t.Context(), prefix+"qq_{0}").Result()
	if err != nil {
		t.Fatal(err)
	}
	got := decode(t, []byte(raw))
	wanted := object{"ref": 7, "client": "alice/phone", "user": "alice", "server": brokers[0].ID(), "query": "map[q:1]"}
	for k, want := range wanted {
		if fmt.Sprint(got[k]) != fmt.Sprint(want) {
			t.Errorf("the worker got %s %v, want %v", k, got[k], want)
		}
	}
	if got["queryAt"] == nil || got["context"] == nil {
		t.Errorf("queryAt or context is missing in %v", got)
	}
	if status, r := brokers[2].call(t, "POST", "/v1/reply", `{"client":"alice/phone","ref":7,"data":{"a":1}}`); status != 200 {
		t.Fatalf("reply: %d %v", status, r)
	}
	p.expect(object{"type": "reply", "ref": 7, "data": "map[a:1]"})
	if status, _ := brokers[2].call(t, "POST", "/v1/reply", `{"client":"unknown","ref":7,"data":1}`); status != 404 {
		t.Fatalf("a reply to an unknown client: %d, want 404", status)
	}
}

func TestFullRequestQueue(t *testing.T) {
	s, prefix := redisStore(t, shared.Client(t), testBeat)
	s.queue = queue.NewRedis(redispipe.New(shared.Client(t), redispipe.Options{}), queue.Options{Prefix: prefix, RequestCap: 1})
	i := start(t, s, func(o *broker.Options) {
		o.Timing.Beat, o.Requests.Queues, o.Requests.From = testBeat, 1, namespace.Anyone
	})
	i.awaitReady(t, http.StatusOK)
	p := dialers["tcp"](t, i)
	p.connect("phone", "alice")
	p.send(`{"type":"request","data":1,"ref":7}`)
	p.expect(object{"type": "accepted", "ref": 7})
	p.send(`{"type":"request","data":1,"ref":8}`)
	p.expect(object{"type": "error", "ref": 8, "code": "rate_limited"})
}

// TestSeparateLinkPort: the links are on a port of their own, with a secret.
func TestSeparateLinkPort(t *testing.T) {
	s, _ := redisStore(t, shared.Client(t), testBeat)
	brokers := startThree(t, s, func(o *broker.Options) {
		o.Links.Address, o.Links.Secret = "127.0.0.1:0", "a secret of 32 bytes at the least"
	})
	p := dialers["tcp"](t, brokers[0])
	p.connect("phone", "")
	p.subscribe("news")
	brokers[1].push(t, `{"channel":"news","data":1}`)
	p.expect(object{"type": "message", "data": 1})
	await.True(t, "a call goes over the links", func() bool {
		_, ch := brokers[2].call(t, "GET", "/v1/channels/news", "")
		return fmt.Sprint(ch["subscribers"]) == "1" && ch["partial"] == nil
	})
	for addr, want := range map[string]int{brokers[0].HTTP: http.StatusNotFound, brokers[0].Addrs.Peer: http.StatusUnauthorized} {
		resp, err := http.Get("http://" + addr + "/peer/link?from=stranger")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("a link without the secret to %s: %d, want %d", addr, resp.StatusCode, want)
		}
	}
}

// TestDeclaredDead: a live server is declared dead. It continues under a new id, and its client
// notices nothing.
func TestDeclaredDead(t *testing.T) {
	t.Parallel()
	s, prefix := redisStore(t, shared.Client(t), testBeat)
	brokers := startThree(t, s, nil)
	p := dialers["tcp"](t, brokers[0])
	p.connect("phone", "alice")
	p.subscribe("news")
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
	// Clean up after the server as the janitor does.
	if _, _, released, err := s.queue.Release(t.Context(), "alice/phone", old); err != nil || !released {
		t.Fatalf("release: %v %v", released, err)
	}
	if err := s.registry.Forget(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	await.True(t, "it has a new id, and everything is bound again", func() bool {
		c, _, err := s.queue.Client(t.Context(), "alice/phone")
		servers, err2 := s.registry.ChannelServers(t.Context(), "news")
		return err == nil && err2 == nil && brokers[0].ID() != old &&
			c.Server == brokers[0].ID() && fmt.Sprint(servers) == fmt.Sprint([]string{brokers[0].ID()})
	})
	await.True(t, "the others see the new id", func() bool { return brokers[1].Live(brokers[0].ID()) })
	brokers[1].push(t, `{"channel":"news","data":1}`)
	p.expect(object{"type": "message", "channel": "news", "data": 1})
	r := brokers[1].push(t, `{"user":"alice","data":2}`)
	if fmt.Sprint(r["clients"].([]any)[0].(object)["online"]) != "true" {
		t.Fatalf("alice is offline: %v", r)
	}
	p.expect(object{"type": "message", "data": 2})
}

func TestShutdownRemovesItsKeys(t *testing.T) {
	s, prefix := redisStore(t, shared.Client(t), testBeat)
	brokers := startThree(t, s, nil)
	var clients []*testClient
	for transport, dial := range dialers {
		p := dial(t, brokers[0])
		p.connect(clientName(transport), "alice")
		p.subscribe("news")
		clients = append(clients, p)
	}
	gone := brokers[0].ID()
	stopped := make(chan error)
	go func() { stopped <- brokers[0].stop() }()
	for _, p := range clients {
		if received := p.untilClosed(); len(received) != 1 || received[0]["code"] != "draining" || received[0]["after_ms"] == nil {
			t.Fatalf("received %v, want draining with after_ms", received)
		}
	}
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	keys, err := shared.Client(t).Keys(context.Background(), prefix+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if strings.Contains(k, gone) || strings.Contains(k, "ch_{news}") && !strings.Contains(k, "mq_") {
			t.Errorf("%s still exists", k)
		}
	}
	r := brokers[1].push(t, `{"user":"alice","data":1}`)
	if n := len(r["clients"].([]any)); n != len(dialers) {
		t.Fatalf("%d clients of alice are known, want %d", n, len(dialers))
	}
}
