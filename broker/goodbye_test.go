package broker_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/queue"
)

// lateQueue fails the first append to news: it has no answer, and is executed by execute.
type lateQueue struct {
	Queue
	late *queue.ChannelPush
}

func (q *lateQueue) AppendChannel(ctx context.Context, push queue.ChannelPush) (queue.Appended, error) {
	if push.Channel == "news" && q.late == nil {
		q.late = &push
		return queue.Appended{}, context.DeadlineExceeded
	}
	return q.Queue.AppendChannel(ctx, push)
}

// leaveRegistry calls before before a server leaves.
type leaveRegistry struct {
	Registry
	before func(ctx context.Context)
}

func (r leaveRegistry) Leave(ctx context.Context, server string) error {
	r.before(ctx)
	return r.Registry.Leave(ctx, server)
}

// TestNoGoodbyeAfterCallWithoutAnswer checks that a message arrives that the store appends only
// after its broker has ended as planned and sent its last hints: that broker must not say goodbye.
func TestNoGoodbyeAfterCallWithoutAnswer(t *testing.T) {
	t.Parallel()
	s, _ := redisStore(t, shared.Client(t), testBeat)
	other := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	other.awaitReady(t, http.StatusOK)
	reader := dialers["tcp"](t, other)
	reader.connect("reader", "")
	reader.subscribe("news")

	late := &lateQueue{Queue: s.queue}
	ending := s
	ending.queue = late
	ending.registry = leaveRegistry{s.registry, func(ctx context.Context) {
		if _, err := late.Queue.AppendChannel(ctx, *late.late); err != nil {
			t.Error(err)
		}
	}}
	// No beat may come after the call: it would show that the store has executed everything.
	i := start(t, ending, func(o *broker.Options) { o.Timing.Beat = time.Minute })
	i.awaitReady(t, http.StatusOK)
	await.True(t, "they see each other", func() bool { return len(i.Servers()) == 2 && len(other.Servers()) == 2 })
	if status, _ := i.call(t, "POST", "/v1/push", `{"channel":"news","data":1}`); status == http.StatusOK {
		t.Fatal("the push succeeded")
	}
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	reader.expect(object{"type": "message", "channel": "news", "data": 1.0})
}
