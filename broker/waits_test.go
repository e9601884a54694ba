package broker_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"testing"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/queue"
)

// page is the answer to a call that reads messages.
type page struct {
	status int
	body   object
}

// tail makes a call that may wait, and returns a channel that receives its answer.
func (i instance) tail(t *testing.T, path string) <-chan page {
	answer := make(chan page, 1)
	go func() {
		status, body := i.call(t, "GET", path, "")
		answer <- page{status, body}
	}()
	return answer
}

// awaitWaits waits until n calls on a server wait for messages of a channel.
func awaitWaits(t *testing.T, i instance, channel string, n int) {
	t.Helper()
	await.True(t, fmt.Sprintf("%d calls wait", n), func() bool { return i.WatchCount(channel) == n })
}

// data returns the payloads of a page.
func (p page) data() (list []any) {
	messages, _ := p.body["messages"].([]any)
	for _, m := range messages {
		list = append(list, m.(object)["data"])
	}
	return list
}

// TestHistoryWaits: calls on all servers wait for a message that one of them stores, and a tail
// that passes on the id misses nothing.
func TestHistoryWaits(t *testing.T) {
	t.Parallel()
	twoBrokers(t, func(t *testing.T, a, b instance) {
		onA, onB := 2, 1
		if a.ID() == b.ID() {
			onA, onB = 3, 3
		}
		var id any = "0"
		for n := range 3 {
			path := fmt.Sprintf("/v1/channels/news/history?after=%v&wait=30", id)
			calls := []<-chan page{a.tail(t, path), a.tail(t, path), b.tail(t, path)}
			awaitWaits(t, a, "news", onA)
			awaitWaits(t, b, "news", onB)
			if _, list := b.call(t, "GET", "/v1/channels", ""); fmt.Sprint(list["channels"]) != "[]" {
				t.Errorf("while calls wait, the channels with subscribers are %v", list)
			}
			pushed := a.push(t, fmt.Sprintf(`{"channel":"news","data":%d}`, n))
			for _, c := range calls {
				p := <-c
				if fmt.Sprint(pushed["servers"]) != "0" {
					t.Errorf("the push reached %v servers, want none", pushed["servers"])
				}
				if p.status != http.StatusOK || fmt.Sprint(p.data()) != fmt.Sprint([]int{n}) || p.body["id"] != pushed["id"] ||
					p.body["recovered"] != true || p.body["more"] != false {
					t.Fatalf("after %v: %v", id, p)
				}
			}
			id = pushed["id"]
		}
		for _, wait := range []string{"", "&wait=0", "&wait=30"} {
			p := <-b.tail(t, "/v1/channels/news/history?after=0&limit=2"+wait)
			if fmt.Sprint(p.data()) != "[0 1]" || p.body["more"] != true || p.body["id"] == id {
				t.Errorf("a page with messages%s: %v", wait, p)
			}
		}
		if p := <-b.tail(t, fmt.Sprintf("/v1/channels/news/history?after=%v", id)); len(p.data()) != 0 || p.body["id"] != id {
			t.Errorf("after the last message: %v", p)
		}
		for _, wait := range []string{"-1", "31", "1.5", "x"} {
			if p := <-a.tail(t, "/v1/channels/news/history?wait="+wait); p.status != http.StatusBadRequest {
				t.Errorf("wait=%s: %v", wait, p)
			}
		}
	})
}

// plusOne returns the number after an id.
func plusOne(t *testing.T, id any) int64 {
	t.Helper()
	n, err := id.(json.Number).Int64()
	if err != nil {
		t.Fatal(err)
	}
	return n + 1
}

// TestHistoryReportsGaps: a call with wait is answered at once if messages after its position are
// gone.
func TestHistoryReportsGaps(t *testing.T) {
	twoBrokers(t, func(t *testing.T, a, b instance) {
		first := a.push(t, `{"channel":"news","data":1}`)
		last := a.push(t, `{"channel":"news","data":2}`)
		p := <-b.tail(t, fmt.Sprintf("/v1/channels/news/history?after=%v&wait=30", plusOne(t, last["id"])))
		if p.body["recovered"] != false || p.body["id"] != last["id"] {
			t.Errorf("after an id that the store does not have: %v", p)
		}
		p = <-b.tail(t, fmt.Sprintf("/v1/channels/other/history?after=%v&wait=30", first["id"]))
		if p.body["recovered"] != false || fmt.Sprint(p.body["id"]) != "0" || len(p.data()) != 0 {
			t.Errorf("an id in a channel that has no messages: %v", p)
		}
	})
}

// TestQueueWaits: the queue of a client can be read without acknowledging it, and calls wait for
// its messages, wherever the client is.
func TestQueueWaits(t *testing.T) {
	t.Parallel()
	twoBrokers(t, func(t *testing.T, a, b instance) {
		if p := <-a.tail(t, "/v1/clients/alice/phone/queue?wait=30"); p.status != http.StatusNotFound {
			t.Fatalf("an unknown client: %v", p)
		}
		pushed := a.push(t, `{"client":"alice/phone","data":1}`)
		for _, path := range []string{"alice/phone", "alice%2Fphone"} {
			for range 2 {
				p := <-b.tail(t, "/v1/clients/"+path+"/queue?wait=30")
				if p.status != http.StatusOK || p.body["client"] != "alice/phone" || fmt.Sprint(p.data()) != "[1]" ||
					p.body["id"] != pushed["id"] || fmt.Sprint(p.body["count"]) != "1" || p.body["recovered"] != true {
					t.Fatalf("the queue of an offline client: %v", p)
				}
			}
		}
		after := func(id any) string { return fmt.Sprintf("/v1/clients/alice/phone/queue?after=%v&wait=30", id) }
		calls := []<-chan page{a.tail(t, after(pushed["id"])), b.tail(t, after(pushed["id"]))}
		pushed = b.push(t, `{"client":"alice/phone","data":2}`)
		for _, c := range calls {
			if p := <-c; fmt.Sprint(p.data()) != "[2]" || p.body["id"] != pushed["id"] || fmt.Sprint(p.body["count"]) != "2" {
				t.Fatalf("the next message: %v", p)
			}
		}
		phone := dialLines(t, net.Dialer{}, b.TCP)
		phone.connect("phone", "alice")
		first := phone.expect(object{"type": "message", "data": 1})
		phone.expect(object{"type": "message", "data": 2})
		phone.send(`{"type":"ack","id":%v}`, first["id"])
		await.True(t, "the acknowledged message is not in the queue", func() bool {
			p := <-a.tail(t, "/v1/clients/alice/phone/queue")
			return fmt.Sprint(p.data()) == "[2]" && fmt.Sprint(p.body["count"]) == "1" && p.body["recovered"] == true
		})
	})
}

// TestQueueReportsDrops: a page says that messages before it were dropped unreceived.
func TestQueueReportsDrops(t *testing.T) {
	i := start(t, memoryStore(queue.Options{ClientCap: 2}), nil)
	var ids []any
	for n := range 4 {
		ids = append(ids, i.push(t, fmt.Sprintf(`{"client":"phone","data":%d}`, n))["id"])
	}
	p := <-i.tail(t, "/v1/clients/phone/queue?wait=30")
	if p.body["recovered"] != false || fmt.Sprint(p.data()) != "[2 3]" {
		t.Errorf("from the start: %v", p)
	}
	p = <-i.tail(t, fmt.Sprintf("/v1/clients/phone/queue?after=%v", ids[2]))
	if p.body["recovered"] != true || fmt.Sprint(p.data()) != "[3]" {
		t.Errorf("after a message that is held: %v", p)
	}
	p = <-i.tail(t, fmt.Sprintf("/v1/clients/phone/queue?after=%v&wait=30", plusOne(t, ids[3])))
	if p.body["recovered"] != false || p.body["id"] != ids[3] {
		t.Errorf("after an id that was never assigned: %v", p)
	}
}

// TestWaitEndsWithTheServer: a server that shuts down answers the calls that wait.
func TestWaitEndsWithTheServer(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Timing.Drain = testTimeout })
	call := i.tail(t, "/v1/channels/news/history?wait=30")
	awaitWaits(t, i, "news", 1)
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	if p := <-call; p.status != http.StatusOK || len(p.data()) != 0 || p.body["recovered"] != true {
		t.Errorf("at the shutdown: %v", p)
	}
}
