package redispipe

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redistest"
)

// count is the source of a script that increments each key.
const count = `
local counts = {}
for i, key in ipairs(KEYS) do
	counts[i] = redis.call('INCR', key)
end
return counts`

// evalOne runs a script for one key.
func evalOne(t *testing.T, p *Pipe, s *BatchScript, key string) (any, error) {
	t.Helper()
	answer := p.EvalEach(t.Context(), Target{Script: s, Keys: []string{key}})[0]
	return answer.Value, answer.Err
}

// durable returns a durable script.
func durable(t *testing.T, source string) *BatchScript {
	return &BatchScript{Script: script(t, source), Durable: true}
}

// withoutTimeout returns a client without read timeout.
func withoutTimeout(t *testing.T, s *redistest.Server) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, ReadTimeout: -1})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// awaitWait returns when a WAIT blocks on s.
func awaitWait(t *testing.T, s *redistest.Server) {
	t.Helper()
	client := s.Client(t)
	for {
		list, err := client.ClientList(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(list) {
			if strings.Contains(line, "flags=b ") && strings.Contains(line, "cmd=wait ") {
				return
			}
		}
	}
}

func TestDurable(t *testing.T) {
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master).Client(t)
	seen := &trips{}
	p := New(master.Client(t), Options{Observe: seen.observe})
	s := durable(t, count)
	for want := range int64(50) {
		if n, err := evalOne(t, p, s, "n"); n != want+1 || err != nil {
			t.Fatalf("%v, %v; want %d", n, err, want+1)
		}
		if n, err := replica.Get(t.Context(), "n").Int64(); n != want+1 || err != nil {
			t.Fatalf("the replica has %d, %v; want %d", n, err, want+1)
		}
	}
	if sizes := seen.sizes(); len(sizes) != 50 || sizes[0] != 2 || sizes[1] != 2 {
		t.Errorf("round trips of %v commands, want a WAIT in each, and no resend", sizes)
	}
}

func TestDurableWithoutReplica(t *testing.T) {
	for name, client := range map[string]redis.UniversalClient{"server": single.Client(t), "cluster": cluster.Client(t)} {
		t.Run(name, func(t *testing.T) {
			p := New(client, Options{ReplicaTimeout: time.Millisecond})
			if n, err := evalOne(t, p, durable(t, count), prefix()); n != int64(1) || !errors.Is(err, ErrNotReplicated) {
				t.Errorf("%v, %v; want 1 and ErrNotReplicated", n, err)
			}
			_, err := evalOne(t, p, durable(t, `return redis.error_reply('MINE no')`), prefix())
			if err == nil || !strings.Contains(err.Error(), "MINE no") || errors.Is(err, ErrNotReplicated) {
				t.Errorf("%v, want the script's own error", err)
			}
		})
	}
}

// TestDurableScriptIsNew checks that a call waits for a replica once if Redis does not know the
// script yet, and that a call gets its value if Redis has lost the script and it waits twice.
func TestDurableScriptIsNew(t *testing.T) {
	seen := &trips{}
	// Two waits take longer than Timeout and ReplicaTimeout.
	p := New(redistest.Start(t).Client(t), Options{Timeout: 300 * time.Millisecond, ReplicaTimeout: 400 * time.Millisecond, Observe: seen.observe})
	s := durable(t, count)
	for i, trips := range []int{1, 2, 4} {
		if i == 2 {
			if err := p.client.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := evalOne(t, p, s, "n"); n != int64(i+1) || !errors.Is(err, ErrNotReplicated) {
			t.Errorf("call %d: %v, %v; want ErrNotReplicated", i, n, err)
		}
		if n := len(seen.sizes()); n != trips {
			t.Errorf("call %d: %d round trips, want %d", i, n, trips)
		}
	}
}

// TestReplicaIsPaused checks that durable calls wait for the replica, and that other calls do not.
func TestReplicaIsPaused(t *testing.T) {
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	p := New(withoutTimeout(t, master), Options{ReplicaTimeout: time.Hour, MaxInFlight: 1})
	s := durable(t, count)
	if _, err := evalOne(t, p, s, "n"); err != nil {
		t.Fatal(err)
	}
	if err := replica.Pause(); err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	call := func(keys ...string) {
		for _, key := range keys {
			calls.Go(func() {
				if n, err := evalOne(t, p, s, key); n == nil || err != nil {
					t.Errorf("%v, %v", n, err)
				}
			})
		}
	}
	call("n")
	awaitWait(t, master)
	call("a", "b", "c") // these are queued
	if n, err := p.Eval(t.Context(), script(t, `return redis.call('INCR', KEYS[1])`), []string{"other"}); n != int64(1) || err != nil {
		t.Errorf("not durable: %v, %v", n, err)
	}
	if err := replica.Resume(); err != nil {
		t.Fatal(err)
	}
	calls.Wait()
	for _, key := range []string{"a", "b", "c"} {
		if n, err := replica.Client(t).Get(t.Context(), key).Int(); n != 1 || err != nil {
			t.Errorf("%s on the replica: %d, %v; want 1", key, n, err)
		}
	}
}

// TestDurableCallsShareRoundTrips checks that queued durable calls share round trips.
func TestDurableCallsShareRoundTrips(t *testing.T) {
	client := single.Client(t)
	g := newGate(client)
	seen := &trips{}
	p := New(client, Options{MaxInFlight: 1, MaxBatch: 40, MaxTargets: 16, ReplicaTimeout: time.Millisecond, Observe: seen.observe})
	s := durable(t, count)
	if err := single.Client(t).ScriptLoad(t.Context(), s.Script.Source).Err(); err != nil {
		t.Fatal(err)
	}
	key := prefix()
	var calls sync.WaitGroup
	call := func() { _, _ = evalOne(t, p, s, key) }
	calls.Go(call)
	<-g.blocked
	for range 50 {
		calls.Go(call)
	}
	until(p, func() bool { return len(waitingLocked(p)) == 50 })
	g.release <- struct{}{}
	g.pass()
	g.pass()
	calls.Wait()
	seen.want(t, 2, 4, 2) // 16, 16, 8 and a WAIT
	if n, err := single.Client(t).Get(t.Context(), key).Int(); n != 51 || err != nil {
		t.Errorf("%d calls ran, %v; want 51", n, err)
	}
}

// TestMasterChangesDuringWait checks the error of a call whose WAIT is interrupted. A master that
// became a replica returns the value and ErrNotReplicated. If the master died, it is unknown
// whether the script ran.
func TestMasterChangesDuringWait(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(s *redistest.Server) error
		ran    bool
	}{
		{"replica", func(s *redistest.Server) error {
			return s.Client(t).Do(t.Context(), "replicaof", "127.0.0.1", "1").Err()
		}, true},
		{"dead", func(s *redistest.Server) error { s.Kill(); return nil }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			master := redistest.Start(t)
			p := New(withoutTimeout(t, master), Options{ReplicaTimeout: time.Hour})
			s := durable(t, count)
			if err := master.Client(t).ScriptLoad(t.Context(), s.Script.Source).Err(); err != nil {
				t.Fatal(err)
			}
			var calls sync.WaitGroup
			calls.Go(func() {
				n, err := evalOne(t, p, s, "n")
				if err == nil || (n == int64(1)) != test.ran || errors.Is(err, ErrNotReplicated) != test.ran {
					t.Errorf("%v, %v", n, err)
				}
			})
			awaitWait(t, master)
			if err := test.change(master); err != nil {
				t.Fatal(err)
			}
			calls.Wait()
			if n, err := evalOne(t, p, s, "n"); err == nil || errors.Is(err, ErrNotReplicated) {
				t.Errorf("the next call: %v, %v; want another error", n, err)
			}
		})
	}
}
