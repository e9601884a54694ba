package redispipe

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redistest"
)

// TestClusterForgetsScripts checks that a node that lost its scripts gets the source again.
func TestClusterForgetsScripts(t *testing.T) {
	client := cluster.Client(t)
	seen := &trips{}
	p := New(client, Options{Timeout: time.Minute, MaxInFlight: 1, Observe: seen.observe})
	pre := prefix()
	s := script(t, `return redis.call('INCR', KEYS[1])`)
	flush := func(node *redistest.Server) {
		if err := node.Client(t).ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, master := range cluster.Masters {
		flush(master)
	}
	for round := range int64(3) {
		for i := range 30 {
			if n, err := p.Eval(t.Context(), s, []string{fmt.Sprint(pre, i)}); n != round+1 || err != nil {
				t.Fatalf("%v, %v; want %d", n, err, round+1)
			}
		}
		flush(cluster.Masters[round])
	}
	resent := len(seen.all) - 90
	if resent != 3+2 { // each master at first, then one master in each of two rounds
		t.Errorf("the source was sent %d times, want 5", resent)
	}
}

// TestSlotMoves checks that the client follows MOVED and that the script runs once.
func TestSlotMoves(t *testing.T) {
	own := redistest.StartCluster(t, 2)
	client := own.Client(t)
	p := New(client, Options{Timeout: time.Minute})
	s := script(t, `return redis.call('INCR', KEYS[1])`)
	const key = "{moves}n"
	slot, err := client.ClusterKeySlot(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := p.Eval(t.Context(), s, []string{key}); n != int64(1) || err != nil {
		t.Fatal(n, err)
	}
	if err := client.Del(t.Context(), key).Err(); err != nil { // an empty slot moves without keys
		t.Fatal(err)
	}
	to := own.Masters[0]
	if slot < 8192 {
		to = own.Masters[1]
	}
	id, err := to.Client(t).Do(t.Context(), "cluster", "myid").Text()
	if err != nil {
		t.Fatal(err)
	}
	for _, master := range []*redistest.Server{to, own.Masters[0], own.Masters[1]} {
		if err := master.Client(t).Do(t.Context(), "cluster", "setslot", slot, "node", id).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for want := range int64(3) {
		if n, err := p.Eval(t.Context(), s, []string{key}); n != want+1 || err != nil {
			t.Fatalf("after the move: %v, %v; want %d", n, err, want+1)
		}
	}
}

// keysOn returns a key on each master.
func keysOn(t *testing.T, masters []*redistest.Server) (keys []string) {
	pre := prefix()
	for _, master := range masters {
		node := master.Client(t)
		for n := 0; ; n++ {
			key := fmt.Sprint(pre, n)
			if err := node.Get(t.Context(), key).Err(); err == redis.Nil {
				keys = append(keys, key)
				break
			} else if !strings.HasPrefix(err.Error(), "MOVED") {
				t.Fatal(err)
			}
		}
	}
	return keys
}

// TestDeadMaster checks that only calls to the dead master fail, and that Observe gets its error,
// also if an error reply comes before it.
func TestDeadMaster(t *testing.T) {
	own := redistest.StartCluster(t, 3)
	client := own.Client(t)
	keys := keysOn(t, own.Masters)
	for _, master := range own.Masters {
		if err := master.Client(t).ConfigSet(t.Context(), "cluster-require-full-coverage", "no").Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	own.Masters[2].Kill()

	seen := &trips{}
	p := New(client, Options{Timeout: time.Minute, Observe: seen.observe})
	for i, key := range keys {
		_, err := incr(t.Context(), p, key)
		if lost := seen.all[i].err; (err != nil) != (i == 2) || (lost != nil) != (i == 2) {
			t.Errorf("key on master %d: %v, observed %v", i, err, lost)
		}
	}
	_ = p.DoAll(t.Context(), []redis.Cmder{redis.NewStatusCmd(t.Context(), "hget", keys[0], "x"), redis.NewIntCmd(t.Context(), "incr", keys[2])})
	if seen.all[3].err == nil {
		t.Errorf("Observe got %v, want a connection error for the last", seen.all)
	}
}

// TestSilentMaster checks that calls to a master that does not answer delay no call to the others.
func TestSilentMaster(t *testing.T) {
	own := redistest.StartCluster(t, 2)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{own.Masters[0].Addr}, MaxRedirects: -1, ReadTimeout: -1})
	t.Cleanup(func() { _ = client.Close() })
	keys := keysOn(t, own.Masters)
	p := New(client, Options{Timeout: time.Hour, MaxInFlight: 1})
	add := add(t)
	all := func(keys ...string) error {
		targets := make([]Target, len(keys))
		for i, key := range keys {
			targets[i] = to(add, 1, key)
		}
		for _, a := range p.EvalEach(context.Background(), targets...) {
			if a.Err != nil {
				return a.Err
			}
		}
		return nil
	}
	if err := all(keys...); err != nil {
		t.Fatal(err)
	}
	if err := own.Masters[1].Pause(); err != nil {
		t.Fatal(err)
	}
	calls := &caller{t: t, pipe: p}
	call := func() {
		if err := all(keys[1]); err != nil {
			t.Error(err)
		}
	}
	awaitIdle(p)
	calls.Go(call)
	until(p, func() bool { return inFlightLocked(p) == 1 && len(waitingLocked(p)) == 0 })
	for i := range 3 {
		calls.start(i+1, call)
	}
	calls.start(4, func() {
		if err := all(keys[0], keys[1], keys[0]); err != nil {
			t.Error(err)
		}
	})
	if err := all(keys[0]); err != nil {
		t.Errorf("a call to the other master: %v", err)
	}
	if n, err := incr(t.Context(), p, keys[0]); err != nil || n == 0 {
		t.Errorf("a command for the other master: %d, %v", n, err)
	}
	if err := own.Masters[1].Resume(); err != nil {
		t.Fatal(err)
	}
	calls.Wait()
}

// TestLimitForMasters checks that a Cluster with more masters has fewer round trips in flight to
// each of them.
func TestLimitForMasters(t *testing.T) {
	for _, test := range [][3]int{{8, 1, 8}, {8, 3, 4}, {8, 16, 2}, {8, 64, 2}, {1, 3, 1}, {2, 64, 2}} {
		if got := limitFor(test[0], test[1]); got != test[2] {
			t.Errorf("at most %d, %d masters: %d, want %d", test[0], test[1], got, test[2])
		}
	}
	p := New(cluster.Client(t), Options{})
	if _, err := incr(t.Context(), p, prefix()); err != nil {
		t.Fatal(err)
	}
	until(p, func() bool { return p.limit == 4 })
}
