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

// TestStoreThatForgetsTellsGaps: Redis comes back empty. Whoever asks from then on, and from wherever,
// is told what it had acknowledged.
func TestStoreThatForgetsTellsGaps(t *testing.T) {
	i, server, _ := lonely(t)
	i.ready(t, http.StatusOK)
	reader := ways["tcp"](t, i)
	reader.connect("reader", "")
	reader.subscribe("news")
	first := i.push(t, `{"channel":"news","data":1}`)["id"]
	last := i.push(t, `{"channel":"news","data":2}`)["id"]
	reader.expect(object{"type": "message", "id": first})
	reader.expect(object{"type": "message", "id": last})
	away := i.push(t, `{"client":"away","data":1}`)["id"]
	read := i.push(t, `{"client":"reader","data":1}`)["id"]
	reader.expect(object{"type": "message", "channel": nil, "id": read})
	reader.say(`{"type":"ack","id":%v}`, read)
	reader.say(`{"type":"ping","ref":7}`) // the acknowledgement is with the broker
	reader.expect(object{"type": "pong", "ref": 7})

	server.Kill()
	i.ready(t, http.StatusServiceUnavailable)
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	i.ready(t, http.StatusOK)

	// The one who follows starts over. That the reader had acknowledged its message is forgotten too.
	gaps := map[string]bool{}
	for len(gaps) < 3 {
		e := reader.hear()
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
			p := ways["websocket on the loop"](t, i)
			p.connect("other", "")
			p.say(`{"type":"subscribe","channel":"news","after":%v,"ref":1}`, after)
			p.expect(object{"type": "subscribed", "recovered": false})
			if after != 0 {
				return // the position that it is given is below all that it has seen
			}
			p.expect(object{"type": "gap", "channel": "news", "after": 0, "id": last})
		})
	}
	for range 2 { // nothing behind it was acknowledged, so it is told again
		p := ways["websocket on net/http"](t, i)
		p.connect("away", "")
		p.expect(object{"type": "gap", "channel": nil, "after": 0, "id": away})
	}
	_, h := i.call(t, "GET", "/v1/channels/news/history", "")
	if h["recovered"] != false || len(h["messages"].([]any)) != 0 {
		t.Errorf("history says %v", h)
	}
}

// deafQueue stores messages, but loses the answers.
type deafQueue struct {
	queue.Queue
	deaf *atomic.Bool
}

var errDeaf = errors.New("the connection broke")

func (q deafQueue) AppendChannel(ctx context.Context, push queue.ChannelPush) (queue.Appended, error) {
	a, err := q.Queue.AppendChannel(ctx, push)
	if q.deaf.Load() {
		return queue.Appended{}, errDeaf
	}
	return a, err
}

func (q deafQueue) AppendClient(ctx context.Context, push queue.ClientPush) (queue.ClientAppended, error) {
	a, err := q.Queue.AppendClient(ctx, push)
	if q.deaf.Load() {
		return queue.ClientAppended{}, errDeaf
	}
	return a, err
}

func (q deafQueue) AppendChannels(ctx context.Context, pushes []queue.ChannelPush) []queue.Outcome[queue.Appended] {
	return one(ctx, pushes, q.AppendChannel)
}

func (q deafQueue) AppendClients(ctx context.Context, pushes []queue.ClientPush) []queue.Outcome[queue.ClientAppended] {
	return one(ctx, pushes, q.AppendClient)
}

// TestAnswerOfTheStoreIsLost: the push is refused, but if it was stored its receivers do not wait for
// the next one to learn of it.
func TestAnswerOfTheStoreIsLost(t *testing.T) {
	s, _ := redisStore(t, shared.Client(t), testBeat)
	i := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	i.ready(t, http.StatusOK)
	p := ways["tcp"](t, i)
	p.connect("phone", "")
	p.subscribe("news")
	deaf := s
	q := deafQueue{s.queue, new(atomic.Bool)}
	deaf.queue = q
	j := start(t, deaf, func(o *broker.Options) { o.Timing.Beat = testBeat })
	j.ready(t, http.StatusOK)
	q.deaf.Store(true)
	for _, target := range []string{"channel\":\"news", "client\":\"phone"} {
		status, answer := j.call(t, "POST", "/v1/push", fmt.Sprintf(`{"%s","data":"maybe"}`, target))
		if status != http.StatusServiceUnavailable {
			t.Fatalf("%d %v", status, answer)
		}
		p.expect(object{"type": "message", "data": "maybe"})
	}
}

// TestBindingThatTheStoreForgot: to have no binding is not to be superseded.
func TestBindingThatTheStoreForgot(t *testing.T) {
	c := shared.Client(t)
	s, prefix := redisStore(t, c, testBeat)
	i := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	i.ready(t, http.StatusOK)
	p := ways["tcp"](t, i)
	p.connect("phone", "alice")
	first := i.push(t, `{"client":"alice/phone","data":1}`)["id"]
	p.expect(object{"type": "message", "id": first})
	if err := c.Del(t.Context(), prefix+"c_{phone}").Err(); err != nil {
		t.Fatal(err)
	}
	p.say(`{"type":"ack","id":%v}`, first)
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

// TestLossThatOnlyTheOwnerSaw: the broker that stored the messages is gone, but another one delivered them.
func TestLossThatOnlyTheOwnerSaw(t *testing.T) {
	server := redistest.Start(t)
	s, _ := redisStore(t, server.Client(t), testBeat)
	beat := func(o *broker.Options) { o.Timing.Beat = testBeat }
	owner, pusher := start(t, s, beat), start(t, s, beat)
	owner.ready(t, http.StatusOK)
	pusher.ready(t, http.StatusOK)
	p := ways["tcp"](t, owner)
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
	owner.ready(t, http.StatusServiceUnavailable)
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	owner.ready(t, http.StatusOK)
	gaps := map[string]bool{}
	for len(gaps) < 3 { // one sets the follower back
		e := p.hear()
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
