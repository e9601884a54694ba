package broker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/internal/redistest"
	"switchboard/queue"
)

// TestEmptyStoreCausesGaps: Redis restarts empty. All readers, from any position, receive a gap for
// the messages that it had acknowledged.
func TestEmptyStoreCausesGaps(t *testing.T) {
	t.Parallel()
	i, server, _ := startWithOwnRedis(t)
	i.awaitReady(t, http.StatusOK)
	reader := dialers["tcp"](t, i)
	reader.connect("reader", "")
	reader.subscribe("news")
	first := i.push(t, `{"channel":"news","data":1}`)["id"]
	last := i.push(t, `{"channel":"news","data":2}`)["id"]
	reader.expect(object{"type": "message", "id": first})
	reader.expect(object{"type": "message", "id": last})
	offline := i.push(t, `{"client":"offline","data":1}`)["id"]
	read := i.push(t, `{"client":"reader","data":1}`)["id"]
	reader.expect(object{"type": "message", "channel": nil, "id": read})
	reader.send(`{"type":"ack","id":%v}`, read)
	reader.send(`{"type":"ping","ref":7}`) // the broker has the acknowledgement
	reader.expect(object{"type": "pong", "ref": 7})

	server.Kill()
	i.awaitReady(t, http.StatusServiceUnavailable)
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	i.awaitReady(t, http.StatusOK)

	// The subscriber starts over. The store also forgot that the reader had acknowledged its message.
	gaps := map[string]bool{}
	for len(gaps) < 3 {
		e := reader.receive()
		gaps[fmt.Sprint(e["type"], " ", e["channel"], " ", e["after"], "-", e["id"])] = true
	}
	for _, want := range []string{
		fmt.Sprintf("gap news %v-0", last), fmt.Sprintf("gap news 0-%v", last), fmt.Sprintf("gap <nil> 0-%v", read),
	} {
		if !gaps[want] {
			t.Errorf("no %q in %v", want, gaps)
		}
	}
	next := i.push(t, `{"client":"reader","data":2}`)["id"]
	reader.expect(object{"type": "message", "channel": nil, "id": next})

	for _, after := range []any{0, first, last} {
		t.Run(fmt.Sprint("after ", after), func(t *testing.T) {
			p := dialers["websocket on the loop"](t, i)
			p.connect("other", "")
			p.send(`{"type":"subscribe","channel":"news","after":%v,"ref":1}`, after)
			p.expect(object{"type": "subscribed", "recovered": false})
			if after != 0 {
				return // the answer has reported the loss already: recovered is false
			}
			p.expect(object{"type": "gap", "channel": "news", "after": 0, "id": last})
		})
	}
	for range 2 { // the client acknowledged nothing after the gap, so it receives the gap again
		p := dialers["websocket on net/http"](t, i)
		p.connect("offline", "")
		p.expect(object{"type": "gap", "channel": nil, "after": 0, "id": offline})
	}
	_, h := i.call(t, "GET", "/v1/channels/news/history", "")
	if h["recovered"] != false || len(h["messages"].([]any)) != 0 {
		t.Errorf("history: %v, want recovered false and no messages", h)
	}
}

// lostAnswerQueue stores messages, but loses the answers while lose is set.
type lostAnswerQueue struct {
	Queue
	lose *atomic.Bool
}

var errAnswerLost = errors.New("the connection broke")

func (q lostAnswerQueue) AppendChannel(ctx context.Context, push queue.ChannelPush) (queue.Appended, error) {
	a, err := q.Queue.AppendChannel(ctx, push)
	if q.lose.Load() {
		return queue.Appended{}, errAnswerLost
	}
	return a, err
}

func (q lostAnswerQueue) AppendClient(ctx context.Context, push queue.ClientPush) (queue.ClientAppended, error) {
	a, err := q.Queue.AppendClient(ctx, push)
	if q.lose.Load() {
		return queue.ClientAppended{}, errAnswerLost
	}
	return a, err
}

func (q lostAnswerQueue) AppendChannels(ctx context.Context, pushes []queue.ChannelPush) []queue.Outcome[queue.Appended] {
	return oneByOne(ctx, pushes, q.AppendChannel)
}

func (q lostAnswerQueue) AppendClients(ctx context.Context, pushes []queue.ClientPush) []queue.Outcome[queue.ClientAppended] {
	return oneByOne(ctx, pushes, q.AppendClient)
}

// TestAnswerOfTheStoreIsLost: the push is refused although it was stored. Its receivers get it
// without waiting for the next push.
func TestAnswerOfTheStoreIsLost(t *testing.T) {
	s, _ := redisStore(t, shared.Client(t), testBeat)
	i := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	i.awaitReady(t, http.StatusOK)
	p := dialers["tcp"](t, i)
	p.connect("phone", "")
	p.subscribe("news")
	losing := s
	q := lostAnswerQueue{s.queue, new(atomic.Bool)}
	losing.queue = q
	j := start(t, losing, func(o *broker.Options) { o.Timing.Beat = testBeat })
	j.awaitReady(t, http.StatusOK)
	q.lose.Store(true)
	for _, target := range []string{"channel\":\"news", "client\":\"phone"} {
		status, answer := j.call(t, "POST", "/v1/push", fmt.Sprintf(`{"%s","data":"maybe"}`, target))
		if status != http.StatusServiceUnavailable {
			t.Fatalf("%d %v", status, answer)
		}
		p.expect(object{"type": "message", "data": "maybe"})
	}
}

// TestBindingThatTheStoreForgot: a session whose binding is lost binds again; it is not superseded.
func TestBindingThatTheStoreForgot(t *testing.T) {
	c := shared.Client(t)
	s, prefix := redisStore(t, c, testBeat)
	i := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	i.awaitReady(t, http.StatusOK)
	p := dialers["tcp"](t, i)
	p.connect("phone", "alice")
	first := i.push(t, `{"client":"alice/phone","data":1}`)["id"]
	p.expect(object{"type": "message", "id": first})
	if err := c.Del(t.Context(), prefix+"c_{phone}").Err(); err != nil {
		t.Fatal(err)
	}
	p.send(`{"type":"ack","id":%v}`, first)
	await.True(t, "the binding is made again, and the acknowledgement arrives", func() bool {
		_, u := i.call(t, "GET", "/v1/users/alice", "")
		devices := u["clients"].([]any)
		if len(devices) != 1 {
			return false
		}
		device := devices[0].(object)
		return device["online"] == true && fmt.Sprint(device["queued"]) == "0"
	})
	second := i.push(t, `{"user":"alice","data":2}`)
	p.expect(object{"type": "message", "channel": nil, "data": 2})
	if len(second["clients"].([]any)) != 1 {
		t.Errorf("pushed to %v", second)
	}
}

// TestLossSeenByTheOwner: the server that stored the messages is gone, but another one that
// delivered them notices the loss.
func TestLossSeenByTheOwner(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, _ := redisStore(t, server.Client(t), testBeat)
	beat := func(o *broker.Options) { o.Timing.Beat = testBeat }
	owner, pusher := start(t, s, beat), start(t, s, beat)
	owner.awaitReady(t, http.StatusOK)
	pusher.awaitReady(t, http.StatusOK)
	p := dialers["tcp"](t, owner)
	p.connect("phone", "")
	p.subscribe("news")
	last := pusher.push(t, `{"channel":"news","data":1}`)["id"]
	p.expect(object{"type": "message", "id": last})
	unread := pusher.push(t, `{"client":"phone","data":1}`)["id"]
	p.expect(object{"type": "message", "channel": nil, "id": unread})
	if err := pusher.stop(); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	owner.awaitReady(t, http.StatusServiceUnavailable)
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	owner.awaitReady(t, http.StatusOK)
	gaps := map[string]bool{}
	for len(gaps) < 3 { // the gap that ends at 0 sets the subscriber's cursor back to the start
		e := p.receive()
		gaps[fmt.Sprint(e["type"], " ", e["channel"], " ", e["after"], "-", e["id"])] = true
	}
	for _, want := range []string{
		fmt.Sprintf("gap news %v-0", last), fmt.Sprintf("gap news 0-%v", last), fmt.Sprintf("gap <nil> 0-%v", unread),
	} {
		if !gaps[want] {
			t.Errorf("no %q in %v", want, gaps)
		}
	}
}
