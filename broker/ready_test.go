package broker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/queue"
	"switchboard/registry"
)

// brokenQueue can be written to, but no longer read.
type brokenQueue struct {
	queue.Queue
	broken *atomic.Bool
}

func (q brokenQueue) ReadChannel(ctx context.Context, channel string, after int64, limit int) (queue.Page, error) {
	if q.broken.Load() {
		return queue.Page{}, errors.New("broken")
	}
	return q.Queue.ReadChannel(ctx, channel, after, limit)
}

// TestReadyMeansThatMessagesComeThrough: the lease and the writes alone are not enough.
func TestReadyMeansThatMessagesComeThrough(t *testing.T) {
	s, _ := redisStore(t, shared.Client(t), testBeat)
	q := brokenQueue{s.queue, new(atomic.Bool)}
	s.queue = q
	i := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	i.ready(t, http.StatusOK)
	q.broken.Store(true)
	i.ready(t, http.StatusServiceUnavailable)
	_, answer := i.call(t, "GET", "/readyz", "")
	if why, _ := answer["reason"].(string); !strings.Contains(why, "not delivered in time") || answer["step"] != "delivery" {
		t.Errorf("not ready because %v", answer)
	}
	q.broken.Store(false)
	i.ready(t, http.StatusOK)
}

// TestReadyNamesTheStep: what the store says is for the log, and not for strangers; it is logged
// once, not at each probe.
func TestReadyNamesTheStep(t *testing.T) {
	log := new(lines)
	s := memoryStore(queue.Options{})
	s.queue = awayQueue{s.queue}
	i := start(t, s, func(o *broker.Options) { o.Logger = zerolog.New(log) })
	i.ready(t, http.StatusServiceUnavailable)
	await.True(t, "it is bound, and the message fails", func() bool {
		_, answer := i.call(t, "GET", "/readyz", "")
		return answer["step"] == "store"
	})
	const asked = 20
	for range asked {
		status, answer := i.call(t, "GET", "/readyz", "")
		if status != http.StatusServiceUnavailable || fmt.Sprint(answer) != "map[ready:false reason:a message could not be stored step:store]" {
			t.Fatalf("%d %v", status, answer)
		}
	}
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	found, n := log.of(t, "not ready: a test message from this server to itself was not delivered")
	if len(found) == 0 || len(found) > asked/2 || n <= asked || found[0]["error"] != "away" || found[0]["step"] != "store" {
		t.Errorf("%d lines tell of %d: %v", len(found), n, found)
	}
}

// TestReadyMeansThatTheStoreKnowsTheServer: bindings that got lost unnoticed show in the probe, and are
// made again.
func TestReadyMeansThatTheStoreKnowsTheServer(t *testing.T) {
	c := shared.Client(t)
	s, prefix := redisStore(t, c, testBeat)
	i := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	i.ready(t, http.StatusOK)
	p := ways["tcp"](t, i)
	p.connect("phone", "")
	p.subscribe("news")
	keys, err := c.Keys(t.Context(), prefix+"ch_{*").Result()
	if err != nil || len(keys) != 3 { // news, $all and the probe's
		t.Fatalf("bound channels %q, %v", keys, err)
	}
	if err := c.Del(t.Context(), keys...).Err(); err != nil {
		t.Fatal(err)
	}
	i.ready(t, http.StatusServiceUnavailable)
	i.ready(t, http.StatusOK)
	if r := i.push(t, `{"channel":"news","data":1}`); r["servers"] == nil {
		t.Fatalf("%v", r)
	}
	p.expect(object{"type": "message", "channel": "news", "data": 1})
}

// deadAtBirth declares the first id dead that wants to join: the answer of a Join was lost, and a janitor
// was faster than the next one.
type deadAtBirth struct {
	registry.Registry
	first string
}

func (r *deadAtBirth) Join(ctx context.Context, s registry.Server) error {
	if r.first == "" {
		r.first = s.ID
	}
	if s.ID == r.first {
		return fmt.Errorf("join server %s: %w", s.ID, registry.ErrDead)
	}
	return r.Registry.Join(ctx, s)
}

func TestServerThatDiedBeforeItJoinedTakesANewID(t *testing.T) {
	s := memoryStore(queue.Options{})
	r := &deadAtBirth{Registry: s.registry}
	s.registry = r
	i := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	i.ready(t, http.StatusOK)
	if i.ID() == r.first {
		t.Error("it has the id of a dead server")
	}
}
