package broker_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/queue"
)

// failingQueue fails calls of sessions: Window while window is set, the others while others is set.
type failingQueue struct {
	Queue
	window, others *atomic.Bool
}

func (q failingQueue) Window(ctx context.Context, client string, generation, after int64, limit int) (queue.Page, error) {
	if q.window.Load() {
		return queue.Page{}, errAnswerLost
	}
	return q.Queue.Window(ctx, client, generation, after, limit)
}

func (q failingQueue) Ack(ctx context.Context, client string, generation, id int64) (int, error) {
	if q.others.Load() {
		return 0, errAnswerLost
	}
	return q.Queue.Ack(ctx, client, generation, id)
}

func (q failingQueue) Acks(ctx context.Context, acks []queue.Ack) []queue.Outcome[int] {
	if !q.others.Load() {
		return q.Queue.Acks(ctx, acks)
	}
	out := make([]queue.Outcome[int], len(acks))
	for i := range out {
		out[i].Err = errAnswerLost
	}
	return out
}

func (q failingQueue) RefreshClients(ctx context.Context, server string, list []queue.HeldClient) []error {
	if !q.others.Load() {
		return q.Queue.RefreshClients(ctx, server, list)
	}
	errs := make([]error, len(list))
	for i := range errs {
		errs[i] = errAnswerLost
	}
	return errs
}

func (q failingQueue) Unbind(ctx context.Context, client string, generation int64) error {
	if q.others.Load() {
		return errAnswerLost
	}
	return q.Queue.Unbind(ctx, client, generation)
}

// phoneKeys returns the content of all keys of the phone.
func phoneKeys(t *testing.T, c *redis.Client, prefix string) string {
	t.Helper()
	list, err := c.LRange(t.Context(), prefix+"mq_c_{alice/phone}", 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	record, err := c.HGetAll(t.Context(), prefix+"c_{alice/phone}").Result()
	if err != nil {
		t.Fatal(err)
	}
	user, err := c.HGetAll(t.Context(), prefix+"u_{alice}").Result()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(list, record, user)
}

// TestSuperseded: a client moves to another broker while the old one runs on, but is cut off in
// some way. The new session starts at the first message that was not acknowledged. The old session
// changes nothing any more and is closed as superseded.
func TestSuperseded(t *testing.T) {
	const cutOff = "127.0.0.1:9" // no server listens on this port
	for name, c := range map[string]struct {
		fault     string // LinkOptions.HintFault of both brokers
		advertise string // empty means reachable
		// window and others select the store calls of the old broker that fail while the client moves.
		// They fail until the old session has ended. With late, they fail only until the old session has
		// acknowledged.
		window, others bool
		late           bool
		ack            bool // the old session acknowledges after the move
	}{
		"by a hint, the store unreachable":                 {window: true, others: true},
		"by a hint, acknowledging":                         {ack: true},
		"by the fencing token of an acknowledgement":       {fault: "drop", window: true, ack: true},
		"by the fencing token of a window, hints lost":     {fault: "drop"},
		"by the fencing token of a window, links cut":      {advertise: cutOff},
		"links cut, acknowledging":                         {advertise: cutOff, window: true, ack: true},
		"the store back, a late acknowledgement":           {fault: "drop", window: true, others: true, ack: true, late: true},
		"all cut, a late acknowledgement":                  {advertise: cutOff, window: true, others: true, ack: true, late: true},
		"all cut, then the store back, no acknowledgement": {advertise: cutOff, window: true, others: true, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time is spent waiting for the sweep
			rdb := shared.Client(t)
			s, prefix := redisStore(t, rdb, testBeat)
			change := func(o *broker.Options) {
				o.Timing.Beat, o.Links.HintFault, o.Links.Advertise = testBeat, c.fault, c.advertise
			}
			b := start(t, s, change)
			q := failingQueue{s.queue, new(atomic.Bool), new(atomic.Bool)}
			s.queue = q
			a := start(t, s, change)
			a.awaitReady(t, http.StatusOK)
			b.awaitReady(t, http.StatusOK)
			await.True(t, "they see each other", func() bool { return a.Live(b.ID()) && b.Live(a.ID()) })

			old := dialers["tcp"](t, a)
			old.connect("phone", "alice")
			var ids []any
			for n := range 5 {
				ids = append(ids, b.push(t, fmt.Sprintf(`{"client":"alice/phone","data":%d}`, n))["id"])
			}
			for _, id := range ids {
				old.expect(object{"type": "message", "id": id})
			}
			old.send(`{"type":"ack","id":%v}`, ids[1])
			await.True(t, "two are acknowledged", func() bool {
				c, _, err := s.queue.Client(t.Context(), "alice/phone")
				return err == nil && c.Queued == 3
			})

			q.window.Store(c.window)
			q.others.Store(c.others)
			next := dialers["websocket on the loop"](t, b)
			next.connect("phone", "alice")
			for _, id := range ids[2:] {
				next.expect(object{"type": "message", "channel": nil, "id": id})
			}
			before := phoneKeys(t, rdb, prefix)
			if c.ack {
				_ = old.write(fmt.Sprintf(`{"type":"ack","id":%v}`, ids[4])) // the connection may be closed already
			}
			if c.late {
				old.send(`{"type":"ping","ref":9}`)
				old.expect(object{"type": "pong", "ref": 9}) // the broker has the acknowledgement and keeps the session
				q.window.Store(false)
				q.others.Store(false)
			}
			if received := old.untilClosed(); len(received) != 1 || received[0]["code"] != "superseded" || received[0]["reconnect"] != false {
				t.Errorf("the old session received %v", received)
			}
			q.window.Store(false)
			q.others.Store(false)
			await.True(t, "the old broker no longer holds the phone", func() bool {
				held, err := rdb.SIsMember(t.Context(), prefix+"s_c_{"+a.ID()+"}", "alice/phone").Result()
				return err == nil && !held
			})
			if after := phoneKeys(t, rdb, prefix); after != before {
				t.Errorf("after the end of the old session the store has\n%s\nand before\n%s", after, before)
			}
			record, _, err := s.queue.Client(t.Context(), "alice/phone")
			if err != nil || record.Server != b.ID() || record.Queued != 3 {
				t.Errorf("the phone is on %q with %d messages waiting (%v), want %q with 3", record.Server, record.Queued, err, b.ID())
			}
			held, err := rdb.SIsMember(t.Context(), prefix+"s_c_{"+b.ID()+"}", "alice/phone").Result()
			if err != nil || !held {
				t.Errorf("the new broker is not recorded as the holder of the phone (%v)", err)
			}
			last := a.push(t, `{"user":"alice","data":5}`)["clients"].([]any)[0].(object)
			if last["online"] != true {
				t.Errorf("pushed to %v", last)
			}
			next.expect(object{"type": "message", "channel": nil, "id": last["id"]})
		})
	}
}

// lostBindAnswers is a queue that loses the answers to binds.
type lostBindAnswers struct{ Queue }

func (q lostBindAnswers) BindClients(ctx context.Context, claims []queue.Claim) []queue.Outcome[queue.Bound] {
	out := q.Queue.BindClients(ctx, claims)
	for i := range out {
		out[i] = queue.Outcome[queue.Bound]{Err: errAnswerLost}
	}
	return out
}

// TestSupersededByALostAnswer: the answer to a bind is lost, so the new broker does not know the
// old one. It sends the hint to all brokers.
func TestSupersededByALostAnswer(t *testing.T) {
	t.Parallel()
	s, _ := redisStore(t, shared.Client(t), testBeat)
	whole := s.queue
	q := failingQueue{whole, new(atomic.Bool), new(atomic.Bool)}
	s.queue = q
	a := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	s.queue = lostBindAnswers{whole}
	b := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	a.awaitReady(t, http.StatusOK)
	b.awaitReady(t, http.StatusOK)
	await.True(t, "they see each other", func() bool { return a.Live(b.ID()) && b.Live(a.ID()) })

	old := dialers["tcp"](t, a)
	old.connect("phone", "alice")
	q.window.Store(true)
	q.others.Store(true)
	next := dialers["tcp"](t, b)
	next.send(`{"type":"connect","ref":1,"client":"phone","user":"alice"}`)
	if received := next.untilClosed(); len(received) != 2 || received[0]["code"] != "unavailable" || received[1]["code"] != "overloaded" {
		t.Errorf("the new session received %v", received)
	}
	if received := old.untilClosed(); len(received) != 1 || received[0]["code"] != "superseded" {
		t.Errorf("the old session received %v", received)
	}
}
