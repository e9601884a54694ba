package broker_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/internal/redistest"
	"switchboard/queue"
)

// startWithOwnRedis runs one broker on a new Redis.
func startWithOwnRedis(t *testing.T, redisArgs ...string) (instance, *redistest.Server, *redis.Client) {
	server := redistest.Start(t, redisArgs...)
	client := server.Client(t)
	s, _ := redisStore(t, client, testBeat)
	i := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	return i, server, client
}

// TestRedisRestartsEmpty: connections stay, and pushes are refused meanwhile. Afterwards everything
// works as before, although Redis is empty.
func TestRedisRestartsEmpty(t *testing.T) {
	t.Parallel()
	i, server, _ := startWithOwnRedis(t)
	i.awaitReady(t, http.StatusOK)
	p := dialers["tcp"](t, i)
	p.connect("phone", "alice")
	p.subscribe("news")
	before := i.push(t, `{"channel":"news","data":1}`)
	p.expect(object{"type": "message", "id": before["id"]})

	server.Kill()
	resp, err := http.Post("http://"+i.HTTP+"/v1/push", "application/json", strings.NewReader(`{"channel":"news","data":2}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable && resp.StatusCode != http.StatusGatewayTimeout {
		t.Fatalf("a push that cannot be stored is %d", resp.StatusCode)
	}
	i.awaitReady(t, http.StatusServiceUnavailable)
	p.send(`{"type":"publish","channel":"news","data":3,"ref":4}`)
	p.expect(object{"type": "error", "ref": 4, "code": "unavailable"})

	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	i.awaitReady(t, http.StatusOK)
	after := i.push(t, `{"channel":"news","data":5}`)
	if fmt.Sprint(after["servers"]) != "1" {
		t.Fatalf("servers is %v: the channel was not bound again", after["servers"])
	}
	got := p.receive()
	for got["type"] == "gap" { // the store lost its messages: gaps, then all messages that it has now
		got = p.receive()
	}
	if fmt.Sprint(got["id"]) != fmt.Sprint(after["id"]) {
		t.Fatalf("got %v, want message %v", got, after["id"])
	}
	await.True(t, "the user is known again", func() bool {
		_, u := i.call(t, "GET", "/v1/users/alice", "")
		return u["online"] == true
	})
	i.push(t, `{"user":"alice","data":6}`)
	p.expect(object{"type": "message", "channel": nil, "data": 6})
}

func TestRedisUnreachableAtStart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Kill()
	s, _ := redisStore(t, server.Client(t), testBeat)
	i := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	i.awaitReady(t, http.StatusServiceUnavailable)
	if status, _ := i.call(t, "GET", "/healthz", ""); status != http.StatusOK {
		t.Fatalf("healthz is %d: the process is alive", status)
	}
	p := dialers["tcp"](t, i)
	p.send(`{"type":"connect","client":"early","ref":1}`)
	received := p.untilClosed()
	if len(received) != 2 || received[0]["code"] != "unavailable" || received[1]["code"] != "overloaded" || received[1]["after_ms"] == nil {
		t.Fatalf("received %v, want unavailable, and after_ms", received)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	i.awaitReady(t, http.StatusOK)
	dialers["tcp"](t, i).connect("early", "")
}

// TestFullRedis: pushes are refused, acknowledgements still work.
func TestFullRedis(t *testing.T) {
	t.Parallel()
	i, _, client := startWithOwnRedis(t, "--maxmemory-policy", "noeviction")
	i.awaitReady(t, http.StatusOK)
	p := dialers["tcp"](t, i)
	p.connect("phone", "alice")
	i.push(t, `{"client":"alice/phone","data":1}`)
	got := p.expect(object{"type": "message", "data": 1})
	if err := client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if status, answer := i.call(t, "POST", "/v1/push", `{"client":"alice/phone","data":2}`); status != http.StatusServiceUnavailable {
		t.Fatalf("a push to a full Redis is %d %v", status, answer)
	}
	p.send(`{"type":"ack","id":%v}`, got["id"])
	await.True(t, "the acknowledgement went through", func() bool {
		_, u := i.call(t, "GET", "/v1/users/alice", "")
		return fmt.Sprint(u["clients"].([]any)[0].(object)["queued"]) == "0"
	})
	i.awaitReady(t, http.StatusServiceUnavailable) // Redis answers, but every push fails
	if err := client.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	i.awaitReady(t, http.StatusOK)
}

// blockingQueue pauses the reads of the channel "race".
type blockingQueue struct {
	Queue
	reading chan struct{} // receives a value for each read
	proceed chan struct{} // each value lets one read continue
}

func (q blockingQueue) ReadChannels(ctx context.Context, reads []queue.ChannelRead) []queue.Outcome[queue.Page] {
	pages := q.Queue.ReadChannels(ctx, reads)
	if reads[0].Channel == "race" {
		q.reading <- struct{}{}
		<-q.proceed
	}
	return pages
}

// TestBindBeforeTheFirstRead: a message that is stored during the first read of a channel is
// delivered, since the channel is bound before the read.
func TestBindBeforeTheFirstRead(t *testing.T) {
	s := memoryStore(queue.Options{})
	q := blockingQueue{s.queue, make(chan struct{}), make(chan struct{})}
	s.queue = q
	i := start(t, s, nil)
	p := dialers["tcp"](t, i)
	p.connect("c", "")
	p.send(`{"type":"subscribe","channel":"race","after":0,"ref":2}`)
	<-q.reading // the position was read: the channel is empty
	r := i.push(t, `{"channel":"race","data":1}`)
	if fmt.Sprint(r["servers"]) != "1" {
		t.Fatal("the channel was read before it was bound: the push finds no owner")
	}
	go func() { // from here on all reads continue
		for {
			select {
			case q.proceed <- struct{}{}:
			case <-q.reading:
			case <-t.Context().Done():
				return
			}
		}
	}()
	p.expect(object{"type": "subscribed", "recovered": true})
	p.expect(object{"type": "message", "id": r["id"]})
}

// TestIdempotentPush: of several concurrent pushes with the same key, one is stored.
func TestIdempotentPush(t *testing.T) {
	s, _ := redisStore(t, shared.Client(t), testBeat)
	brokers := startThree(t, s, nil)
	p := dialers["tcp"](t, brokers[0])
	p.connect("phone", "alice")
	p.subscribe("news")
	for n, target := range []string{`"channel":"news"`, `"user":"alice"`, `"client":"alice/phone"`} {
		body := fmt.Sprintf(`{%s,"key":"once-%d","data":1}`, target, n)
		answers := make(chan string)
		for n := range 9 {
			go func() {
				resp, err := http.Post("http://"+brokers[n%3].HTTP+"/v1/push", "application/json", strings.NewReader(body))
				if err != nil {
					answers <- err.Error()
					return
				}
				defer resp.Body.Close()
				raw, _ := io.ReadAll(resp.Body)
				answers <- string(raw)
			}()
		}
		originals := 0
		for range 9 {
			answer := <-answers
			if !strings.Contains(answer, `"results"`) {
				t.Fatal(answer)
			}
			if !strings.Contains(answer, `"duplicate":true`) {
				originals++
			}
		}
		if originals != 1 {
			t.Errorf("%s: %d of 9 are no duplicates, want 1", target, originals)
		}
		p.expect(object{"type": "message", "data": 1})
	}
	p.send(`{"type":"ping","ref":1}`)
	p.expect(object{"type": "pong"})
}

func TestConnectionLimit(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Limits.Connections = 2 })
	for n := range 2 {
		dialers["tcp"](t, i).connect(fmt.Sprint("c", n), "")
	}
	p := dialers["tcp"](t, i)
	if received := p.untilClosed(); len(received) != 1 || received[0]["code"] != "overloaded" || received[0]["after_ms"] == nil {
		t.Fatalf("received %v, want overloaded, and after_ms", received)
	}
	req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+i.HTTP+"/ws", nil)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Fatalf("an upgrade with no room is %d", resp.StatusCode)
	}
	if status, _ := i.call(t, "GET", "/v1/servers", ""); status != http.StatusOK {
		t.Fatalf("the API is %d when clients fill the process", status)
	}
}

func TestIdleConnectionsArePingedAndClosed(t *testing.T) {
	t.Parallel()
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Timing.Ping = time.Second })
	p := dialers["tcp"](t, i)
	p.connect("silent", "")
	received := p.untilClosed()
	if len(received) != 2 || received[0]["type"] != "ping" || received[1]["code"] != "idle" || received[1]["reconnect"] != true {
		t.Fatalf("received %v, want a ping and then idle", received)
	}
}
