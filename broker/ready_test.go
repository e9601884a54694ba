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

// brokenQueue fails reads of channels while broken is set.
type brokenQueue struct {
	Queue
	broken *atomic.Bool
}

func (q brokenQueue) ReadChannel(ctx context.Context, channel string, after int64, limit int) (queue.Page, error) {
	if q.broken.Load() {
		return queue.Page{}, errors.New("broken")
	}
	return q.Queue.ReadChannel(ctx, channel, after, limit)
}

// TestReadyRequiresDelivery: a lease and successful writes alone do not make a broker ready.
func TestReadyRequiresDelivery(t *testing.T) {
	t.Parallel()
	s, _ := redisStore(t, shared.Client(t), testBeat)
	q := brokenQueue{s.queue, new(atomic.Bool)}
	s.queue = q
	i := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	i.awaitReady(t, http.StatusOK)
	q.broken.Store(true)
	i.awaitReady(t, http.StatusServiceUnavailable)
	_, answer := i.call(t, "GET", "/readyz", "")
	if why, _ := answer["reason"].(string); !strings.Contains(why, "not delivered in time") || answer["step"] != "delivery" {
		t.Errorf("not ready because %v", answer)
	}
	q.broken.Store(false)
	i.awaitReady(t, http.StatusOK)
}

// TestReadyNamesTheStep: the answer names the failed step. Only the log has the store's error, and
// it counts repeated ones.
func TestReadyNamesTheStep(t *testing.T) {
	log := new(lines)
	s := memoryStore(queue.Options{})
	s.queue = unreachableQueue{s.queue}
	i := start(t, s, func(o *broker.Options) { o.Logger = zerolog.New(log) })
	i.awaitReady(t, http.StatusServiceUnavailable)
	await.True(t, "everything is bound, and the test message fails", func() bool {
		_, answer := i.call(t, "GET", "/readyz", "")
		return answer["step"] == "store"
	})
	const probes = 20
	for range probes {
		status, answer := i.call(t, "GET", "/readyz", "")
		if status != http.StatusServiceUnavailable || fmt.Sprint(answer) != "map[ready:false reason:a message could not be stored step:store]" {
			t.Fatalf("%d %v", status, answer)
		}
	}
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	found, n := log.of(t, "not ready: a test message from this server to itself was not delivered")
	if len(found) == 0 || len(found) > probes/2 || n <= probes || found[0]["error"] != "away" || found[0]["step"] != "store" {
		t.Errorf("%d lines count %d failures: %v", len(found), n, found)
	}
}

// TestReadyRequiresBindings: the self test notices lost bindings, and the broker makes them again.
func TestReadyRequiresBindings(t *testing.T) {
	t.Parallel()
	c := shared.Client(t)
	s, prefix := redisStore(t, c, testBeat)
	i := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	i.awaitReady(t, http.StatusOK)
	p := dialers["tcp"](t, i)
	p.connect("phone", "")
	p.subscribe("news")
	keys, err := c.Keys(t.Context(), prefix+"ch_{*").Result()
	if err != nil || len(keys) != 3 { // news, $all and the channel of the self test
		t.Fatalf("bound channels %q, %v", keys, err)
	}
	if err := c.Del(t.Context(), keys...).Err(); err != nil {
		t.Fatal(err)
	}
	i.awaitReady(t, http.StatusServiceUnavailable)
	i.awaitReady(t, http.StatusOK)
	if r := i.push(t, `{"channel":"news","data":1}`); r["servers"] == nil {
		t.Fatalf("%v", r)
	}
	p.expect(object{"type": "message", "channel": "news", "data": 1})
}

// deadOnJoin is a registry in which the id of the first beat counts as dead. This happens if its
// answer is lost, and a janitor cleans up before the next one.
type deadOnJoin struct {
	Registry
	first string
}

func (r *deadOnJoin) Renew(ctx context.Context, s registry.Server, since int64) (registry.Changes, error) {
	if r.first == "" {
		r.first = s.ID
	}
	if s.ID == r.first {
		return registry.Changes{}, fmt.Errorf("beat of server %s: %w", s.ID, registry.ErrDead)
	}
	return r.Registry.Renew(ctx, s, since)
}

func TestServerDeclaredDeadBeforeJoinTakesNewID(t *testing.T) {
	s := memoryStore(queue.Options{})
	r := &deadOnJoin{Registry: s.registry}
	s.registry = r
	i := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	i.awaitReady(t, http.StatusOK)
	if i.ID() == r.first {
		t.Error("the broker uses the id of a dead server")
	}
}
