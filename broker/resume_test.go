package broker_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/queue"
)

// id returns a message id of a decoded object.
func id(t *testing.T, v any) int64 {
	t.Helper()
	n, err := v.(json.Number).Int64()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSubscribeAfterDeliversMissedMessages(t *testing.T) {
	t.Parallel()
	i := start(t, memoryStore(queue.Options{}), nil)
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		channel := strings.ReplaceAll(t.Name(), " ", "-")
		var ids []int64
		for n := range 700 { // several pages, and more than the tail holds
			ids = append(ids, id(t, i.push(t, fmt.Sprintf(`{"channel":%q,"data":%d}`, channel, n))["id"]))
		}
		p := dial(i)
		p.connect("c", "")
		for _, from := range []int{-1, 0, 350, 698, 699} {
			after := int64(0)
			if from >= 0 {
				after = ids[from]
			}
			p.send(`{"type":"subscribe","channel":%q,"after":%d,"ref":2}`, channel, after)
			p.expect(object{"type": "subscribed", "recovered": true, "id": after})
			for n := from + 1; n < len(ids); n++ {
				p.expect(object{"type": "message", "id": ids[n], "data": n})
			}
			p.send(`{"type":"unsubscribe","channel":%q,"ref":3}`, channel)
			p.expect(object{"type": "unsubscribed"})
		}
		p.send(`{"type":"subscribe","channel":%q,"after":%d,"ref":2}`, channel, ids[0]-2)
		answer := p.expect(object{"type": "subscribed", "recovered": false}) // an id that was never assigned
		if id(t, answer["id"]) >= ids[0] {
			t.Fatalf("not recovered, but the position %v skips messages that the queue keeps", answer["id"])
		}
		p.expect(object{"type": "message", "id": ids[0]})
	})
}

// TestResumeEmptyAll checks that a client that saw $all empty can resume there. Its position is not
// 0, which would look like a position that the store has forgotten.
func TestResumeEmptyAll(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	p := dialers["tcp"](t, i)
	p.send(`{"type":"connect","client":"phone","secret":"%032d"}`, 1)
	all := id(t, p.expect(object{"type": "connected"})["id"])
	if all == 0 {
		t.Fatal("the position on an empty $all is 0")
	}
	p.close()
	sent := id(t, i.push(t, `{"all":true,"data":1}`)["id"])
	p = dialers["tcp"](t, i)
	p.send(`{"type":"connect","client":"phone","secret":"%032d","after":%d}`, 1, all)
	p.expect(object{"type": "connected", "recovered": nil}) // no gap
	p.expect(object{"type": "message", "channel": "$all", "id": sent})
}

func TestTrimmedMessagesCauseAGap(t *testing.T) {
	i := start(t, memoryStore(queue.Options{ChannelCap: 10}), nil)
	first := id(t, i.push(t, `{"channel":"a","data":0}`)["id"])
	var last []int64
	for n := range 20 {
		last = append(last, id(t, i.push(t, fmt.Sprintf(`{"channel":"a","data":%d}`, n))["id"]))
	}
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		p := dial(i)
		p.connect("c", "")
		p.send(`{"type":"subscribe","channel":"a","after":%d,"ref":2}`, first)
		p.expect(object{"type": "subscribed", "recovered": false, "id": last[9]})
		for _, want := range last[10:] {
			p.expect(object{"type": "message", "id": want})
		}
	})
}

func TestConnectResumesBroadcasts(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		p := dial(i)
		at := p.connect("c", "")["id"]
		p.close()
		missed := i.push(t, `{"all":true,"data":1}`)["id"]
		p = dial(i)
		p.send(`{"type":"connect","client":"c","after":%v,"ref":1}`, at)
		p.expect(object{"type": "connected"})
		p.expect(object{"type": "message", "channel": "$all", "id": missed})
	})
}

func TestClientQueueIsKeptUntilAcknowledged(t *testing.T) {
	t.Parallel()
	i := start(t, memoryStore(queue.Options{}), nil)
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		user := clientName(t.Name())
		client := user + "/tab"
		var ids []int64
		for n := range 600 {
			r := i.push(t, fmt.Sprintf(`{"client":%q,"data":%d}`, client, n))
			if r["online"] != false {
				t.Fatal("online before it connected")
			}
			ids = append(ids, id(t, r["id"]))
		}
		p := dial(i)
		if got := p.connect("tab", user)["queued"]; fmt.Sprint(got) != "600" {
			t.Fatalf("queued is %v", got)
		}
		for n := range 256 {
			p.expect(object{"type": "message", "id": ids[n]})
		}
		p.send(`{"type":"ping","ref":5}`)
		p.expect(object{"type": "pong"}) // and no message 257: the window is full
		p.send(`{"type":"ack","id":%d}`, ids[99])
		for n := 256; n < 356; n++ {
			p.expect(object{"type": "message", "id": ids[n]})
		}
		p.close()

		p = dial(i) // messages that were not acknowledged are sent again
		p.connect("tab", user)
		for n := 100; n < 356; n++ {
			p.expect(object{"type": "message", "id": ids[n]})
		}
		for n := 356; n <= 600; n++ { // one by one to the end
			p.send(`{"type":"ack","id":%d}`, ids[n-1])
			if n < 600 {
				p.expect(object{"type": "message", "id": ids[n]})
			}
		}
		await.True(t, "everything is acknowledged", func() bool {
			_, u := i.call(t, "GET", "/v1/users/"+url.PathEscape(user), "")
			return fmt.Sprint(u["clients"].([]any)[0].(object)["queued"]) == "0"
		})
	})
}

func TestAutomaticAcknowledgement(t *testing.T) {
	t.Parallel()
	i := start(t, memoryStore(queue.Options{}), nil)
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		user := clientName(t.Name())
		client := user + "/tab"
		for n := range 400 { // more than a window
			i.push(t, fmt.Sprintf(`{"client":%q,"data":%d}`, client, n))
		}
		p := dial(i)
		p.send(`{"type":"connect","client":%q,"user":%q,"ack":"auto","ref":1}`, "tab", user)
		p.expect(object{"type": "connected", "queued": 400})
		for n := range 400 {
			p.expect(object{"type": "message", "data": n})
		}
		await.True(t, "written messages count as received", func() bool {
			_, u := i.call(t, "GET", "/v1/users/"+url.PathEscape(user), "")
			return fmt.Sprint(u["clients"].([]any)[0].(object)["queued"]) == "0"
		})
	})
}

// TestAcknowledgeAfterReconnect: right after connect, a client acknowledges messages of its earlier
// connection. They are not sent again. An id that was never assigned is refused and removes
// nothing.
func TestAcknowledgeAfterReconnect(t *testing.T) {
	overRedis, _ := redisStore(t, shared.Client(t), testBeat)
	for name, s := range map[string]store{"memory": memoryStore(queue.Options{}), "redis": overRedis} {
		t.Run(name, func(t *testing.T) {
			i := start(t, s, nil)
			ids := i.fill(t, "phone", 5, `"data":1`)
			p := dialers["tcp"](t, i)
			p.connect("phone", "")
			p.expectIDs(ids)
			p.close()
			again := dialers["tcp"](t, i)
			again.send(`{"type":"connect","client":"phone","secret":%q}`+"\n"+`{"type":"ack","id":%d}`+"\n"+`{"type":"ack","id":%d,"ref":7}`,
				secretOf("phone"), ids[2], ids[4]+1)
			again.expect(object{"type": "connected", "queued": 5})
			again.expect(object{"type": "error", "code": "bad_request", "ref": 7})
			again.expectIDs(ids[3:])
			again.send(`{"type":"ack","id":%d}`, ids[4])
			await.True(t, "everything is acknowledged", func() bool {
				c, _, err := s.queue.Client(t.Context(), "phone")
				return err == nil && c.Queued == 0
			})
		})
	}
}

func TestClientQueueOverflowCausesAGap(t *testing.T) {
	i := start(t, memoryStore(queue.Options{ClientCap: 5}), nil)
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		client := clientName(t.Name())
		var ids []int64
		for n := range 8 {
			ids = append(ids, id(t, i.push(t, fmt.Sprintf(`{"client":%q,"data":%d}`, client, n))["id"]))
		}
		p := dial(i)
		p.connect(client, "")
		p.expect(object{"type": "gap", "channel": nil, "id": ids[2]})
		for _, want := range ids[3:] {
			p.expect(object{"type": "message", "id": want})
		}
	})
}

// TestSlowClientDoesNotDelayOthers: of two clients, one does not read. It then continues from its
// cursor, with a gap, since the store has dropped the oldest messages.
func TestSlowClientDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	i := start(t, memoryStore(queue.Options{ChannelMaxBytes: 512 << 10}), nil)
	for name, dial := range smallDialers {
		t.Run(name, func(t *testing.T) {
			channel := strings.ReplaceAll(name, " ", "-")
			slow, quick := dial(t, i), dialers["tcp"](t, i)
			slow.connect("slow", "")
			quick.connect("quick", "")
			slow.subscribe(channel)
			quick.subscribe(channel)
			payload := strings.Repeat("x", 16<<10)
			const messages = 128 // 2 MiB: more than the buffers and the store hold
			for n := range messages {
				i.push(t, fmt.Sprintf(`{"channel":%q,"data":[%d,%q]}`, channel, n, payload))
				got := quick.expect(object{"type": "message"})
				if fmt.Sprint(got["data"].([]any)[0]) != fmt.Sprint(n) {
					t.Fatalf("the quick client received %v, want %d", got["data"].([]any)[0], n)
				}
			}
			n, gaps := 0, 0
			for n < messages {
				got := slow.receive()
				if got["type"] == "gap" {
					gaps++
					continue
				}
				at := int(id(t, got["data"].([]any)[0]))
				if at < n {
					t.Fatalf("message %d came after %d", at, n-1)
				}
				n = at + 1
			}
			if gaps == 0 {
				t.Error("no gap: the test did not fill the socket")
			}
		})
	}
}

func TestSlowClientIsClosed(t *testing.T) {
	t.Parallel()
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Timing.Slow = time.Second })
	c, err := net.Dial("tcp", i.TCP)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintln(c, `{"type":"connect","client":"slow"}`)
	fmt.Fprintln(c, `{"type":"subscribe","channel":"a"}`)
	await.True(t, "the client is subscribed", func() bool {
		_, ch := i.call(t, "GET", "/v1/channels/a", "")
		return fmt.Sprint(ch["subscribers"]) == "1"
	})
	body := fmt.Sprintf(`{"channel":"a","data":%q}`, strings.Repeat("x", 60_000))
	await.True(t, "the slow client is closed", func() bool {
		i.push(t, body)
		_, ch := i.call(t, "GET", "/v1/channels/a", "")
		return fmt.Sprint(ch["subscribers"]) == "0"
	})
}

// TestUnreadErrors: a client that sends nonsense and does not read the answers is closed as
// overloaded, before its answers fill the memory.
func TestUnreadErrors(t *testing.T) {
	for name, nonsense := range map[string]string{
		"acks":    `{"type":"ack","id":1}`,
		"unknown": `{"type":"dance"}`,
	} {
		t.Run(name, func(t *testing.T) {
			i := start(t, memoryStore(queue.Options{}), nil)
			c, err := smallDialer.Dial("tcp", i.TCP)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(testTimeout))
			fmt.Fprintln(c, `{"type":"connect"}`)
			closed := func() bool {
				resp, err := http.Get("http://" + i.HTTP + "/metrics")
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				return strings.Contains(string(text), `switchboard_closes_total{reason="overloaded"} 1`)
			}
			for !closed() { // the buffers of the socket grow before they are full
				if _, err := io.WriteString(c, strings.Repeat(nonsense+"\n", 5000)); err != nil {
					t.Fatal(err)
				}
			}
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			if stats.HeapInuse > 100<<20 {
				t.Errorf("%d MB of heap are in use", stats.HeapInuse>>20)
			}
		})
	}
}
