package redispipe

import (
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

// TestUnreachableMaster checks that only calls to the dead master fail, and that Observe gets its
// error.
func TestUnreachableMaster(t *testing.T) {
	own := redistest.StartCluster(t, 3)
	client := own.Client(t)
	pre := prefix()
	keyOn := func(i int) string {
		node := own.Masters[i].Client(t)
		for n := 0; ; n++ {
			key := fmt.Sprint(pre, n)
			if err := node.Get(t.Context(), key).Err(); err == redis.Nil {
				return key
			} else if !strings.HasPrefix(err.Error(), "MOVED") {
				t.Fatal(err)
			}
		}
	}
	keys := []string{keyOn(0), keyOn(1), keyOn(2)}
	for _, master := range own.Masters {
		if err := master.Client(t).ConfigSet(t.Context(), "cluster-require-full-coverage", "no").Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	own.Masters[2].Kill()

	g := newGate(client)
	seen := &trips{}
	p := New(client, Options{Timeout: time.Minute, MaxInFlight: 1, Observe: seen.observe})
	calls := &caller{t: t, pipe: p}
	calls.Go(func() { _, _ = incr(t.Context(), p, keys[0]) })
	<-g.blocked
	for i, key := range keys {
		calls.start(i+1, func() {
			if _, err := incr(t.Context(), p, key); (err != nil) != (i == 2) {
				t.Errorf("key on master %d: %v", i, err)
			}
		})
	}
	// The first command gets an error reply, which must not hide the connection error.
	calls.start(4, func() { _ = p.Do(t.Context(), redis.NewStatusCmd(t.Context(), "hget", keys[0], "x")) })
	p.mu.Lock()
	p.plain.waiting[0], p.plain.waiting[3] = p.plain.waiting[3], p.plain.waiting[0]
	p.mu.Unlock()
	g.release <- struct{}{}
	g.pass()
	calls.Wait()
	if len(seen.all) != 2 || seen.all[0].err != nil || seen.all[1].err == nil {
		t.Errorf("Observe got %v, want a connection error for the second", seen.all)
	}
}
