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

// cutQueue fails the calls that sessions make, while it is told to.
type cutQueue struct {
	queue.Queue
	window, others *atomic.Bool
}

func (q cutQueue) Window(ctx context.Context, client string, generation, after int64, limit int) (queue.Page, error) {
	if q.window.Load() {
		return queue.Page{}, errDeaf
	}
	return q.Queue.Window(ctx, client, generation, after, limit)
}

func (q cutQueue) Ack(ctx context.Context, client string, generation, id int64) (int, error) {
	if q.others.Load() {
		return 0, errDeaf
	}
	return q.Queue.Ack(ctx, client, generation, id)
}

func (q cutQueue) Acks(ctx context.Context, acks []queue.Ack) []queue.Outcome[int] {
	if !q.others.Load() {
		return q.Queue.Acks(ctx, acks)
	}
	out := make([]queue.Outcome[int], len(acks))
	for i := range out {
		out[i].Err = errDeaf
	}
	return out
}

func (q cutQueue) RefreshClients(ctx context.Context, server string, list []queue.Held) []error {
	if !q.others.Load() {
		return q.Queue.RefreshClients(ctx, server, list)
	}
	errs := make([]error, len(list))
	for i := range errs {
		errs[i] = errDeaf
	}
	return errs
}

func (q cutQueue) Unbind(ctx context.Context, client string, generation int64) error {
	if q.others.Load() {
		return errDeaf
	}
	return q.Queue.Unbind(ctx, client, generation)
}

// phoneKeys is all that the store holds about the phone.
func phoneKeys(t *testing.T, c *redis.Client, prefix string) string {
	t.Helper()
	list, err := c.LRange(t.Context(), prefix+"mq_c_{phone}", 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	record, err := c.HGetAll(t.Context(), prefix+"c_{phone}").Result()
	if err != nil {
		t.Fatal(err)
	}
	user, err := c.HGetAll(t.Context(), prefix+"u_{alice}").Result()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(list, record, user)
}

// TestSuperseded moves a client to another broker while the old one lives on, in one way or another cut
// off. The new session begins at the first message that was not acknowledged; the old one changes nothing
// any more, and is told.
func TestSuperseded(t *testing.T) {
	const cutOff = "127.0.0.1:9" // nobody listens there
	for name, c := range map[string]struct {
		fault     string // of the new broker's hints
		advertise string // empty: reachable
		// What of the old broker's store calls fails while the client moves, and stays so until the old
		// session has ended, or with late until it has acknowledged.
		window, others bool
		late           bool
		ack            bool // the old session acknowledges after the move
	}{
		"by a hint, the store away":                 {window: true, others: true},
		"by a hint, acknowledging":                  {ack: true},
		"by the fence of an acknowledgement":        {fault: "drop", window: true, ack: true},
		"by the fence of a window, hints lost":      {fault: "drop"},
		"by the fence of a window, peers cut off":   {advertise: cutOff},
		"peers cut off, acknowledging":              {advertise: cutOff, window: true, ack: true},
		"the store back, a late acknowledgement":    {fault: "drop", window: true, others: true, ack: true, late: true},
		"all cut off, late, and the store is back":  {advertise: cutOff, window: true, others: true, ack: true, late: true},
		"all cut off, silent, and the store's back": {advertise: cutOff, window: true, others: true, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it is waiting for the sweep
			rdb := shared.Client(t)
			s, prefix := redisStore(t, rdb, testBeat)
			change := func(o *broker.Options) {
				o.Timing.Beat, o.Links.HintFault, o.Links.Advertise = testBeat, c.fault, c.advertise
			}
			b := start(t, s, change)
			q := cutQueue{s.queue, new(atomic.Bool), new(atomic.Bool)}
			s.queue = q
			a := start(t, s, change)
			a.ready(t, http.StatusOK)
			b.ready(t, http.StatusOK)
			await.True(t, "they see each other", func() bool { return a.Live(b.ID()) && b.Live(a.ID()) })

			old := ways["tcp"](t, a)
			old.connect("phone", "alice")
			var ids []any
			for n := range 5 {
				ids = append(ids, b.push(t, fmt.Sprintf(`{"client":"alice/phone","data":%d}`, n))["id"])
			}
			for _, id := range ids {
				old.expect(object{"type": "message", "id": id})
			}
			old.say(`{"type":"ack","id":%v}`, ids[1])
			await.True(t, "two are acknowledged", func() bool {
				c, _, err := s.queue.Client(t.Context(), "alice/phone")
				return err == nil && c.Queued == 3
			})

			q.window.Store(c.window)
			q.others.Store(c.others)
			next := ways["websocket on the loop"](t, b)
			next.connect("phone", "alice")
			for _, id := range ids[2:] {
				next.expect(object{"type": "message", "channel": nil, "id": id})
			}
			before := phoneKeys(t, rdb, prefix)
			if c.ack {
				_ = old.write(fmt.Sprintf(`{"type":"ack","id":%v}`, ids[4])) // it may be closed already
			}
			if c.late {
				old.say(`{"type":"ping","ref":9}`)
				old.expect(object{"type": "pong", "ref": 9}) // the acknowledgement is with the broker, which keeps the session
				q.window.Store(false)
				q.others.Store(false)
			}
			if heard := old.ends(); len(heard) != 1 || heard[0]["code"] != "superseded" || heard[0]["reconnect"] != false {
				t.Errorf("the old session heard %v", heard)
			}
			q.window.Store(false)
			q.others.Store(false)
			await.True(t, "the old broker lets go", func() bool {
				held, err := rdb.SIsMember(t.Context(), prefix+"s_c_{"+a.ID()+"}", "alice/phone").Result()
				return err == nil && !held
			})
			if after := phoneKeys(t, rdb, prefix); after != before {
				t.Errorf("the store holds\n%s\nand before the end of the old session it was\n%s", after, before)
			}
			record, _, err := s.queue.Client(t.Context(), "alice/phone")
			if err != nil || record.Server != b.ID() || record.Queued != 3 {
				t.Errorf("the phone is on %q with %d messages waiting (%v), want %q with 3", record.Server, record.Queued, err, b.ID())
			}
			held, err := rdb.SIsMember(t.Context(), prefix+"s_c_{"+b.ID()+"}", "alice/phone").Result()
			if err != nil || !held {
				t.Errorf("the new broker has not noted that it holds the phone (%v)", err)
			}
			last := a.push(t, `{"user":"alice","data":5}`)["clients"].([]any)[0].(object)
			if last["online"] != true {
				t.Errorf("pushed to %v", last)
			}
			next.expect(object{"type": "message", "channel": nil, "id": last["id"]})
		})
	}
}

// lostBinds is a queue whose answers to binds are lost on the way.
type lostBinds struct{ queue.Queue }

func (q lostBinds) BindClients(ctx context.Context, claims []queue.Claim) []queue.Outcome[queue.Bound] {
	out := q.Queue.BindClients(ctx, claims)
	for i := range out {
		out[i] = queue.Outcome[queue.Bound]{Err: errDeaf}
	}
	return out
}

// TestSupersededByALostAnswer: the new broker does not hear whose the client was, and the old one can learn it by a hint only.
func TestSupersededByALostAnswer(t *testing.T) {
	s, _ := redisStore(t, shared.Client(t), testBeat)
	whole := s.queue
	q := cutQueue{whole, new(atomic.Bool), new(atomic.Bool)}
	s.queue = q
	a := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	s.queue = lostBinds{whole}
	b := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	a.ready(t, http.StatusOK)
	b.ready(t, http.StatusOK)
	await.True(t, "they see each other", func() bool { return a.Live(b.ID()) && b.Live(a.ID()) })

	old := ways["tcp"](t, a)
	old.connect("phone", "alice")
	q.window.Store(true)
	q.others.Store(true)
	next := ways["tcp"](t, b)
	next.say(`{"type":"connect","ref":1,"client":"phone","user":"alice"}`)
	if heard := next.ends(); len(heard) != 2 || heard[0]["code"] != "unavailable" || heard[1]["code"] != "overloaded" {
		t.Errorf("the new session heard %v", heard)
	}
	if heard := old.ends(); len(heard) != 1 || heard[0]["code"] != "superseded" {
		t.Errorf("the old session heard %v", heard)
	}
}
