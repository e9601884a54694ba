//go:build long

package redispipe

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redistest"
)

// TestDurableInCluster checks that durable calls go to the node of each key, and that none is
// repeated.
func TestDurableInCluster(t *testing.T) {
	own := redistest.StartReplicatedCluster(t, 3)
	seen := &trips{}
	p := New(own.Client(t), Options{Observe: seen.observe})
	s := durable(t, count)
	for i := range 60 {
		if n, err := evalOne(t, p, s, fmt.Sprint("k", i)); n != int64(1) || err != nil {
			t.Fatalf("key %d: %v, %v; want 1", i, n, err)
		}
	}
	held := int64(0)
	for _, replica := range own.Replicas {
		n, err := replica.Client(t).DBSize(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		held += n
	}
	if held != 60 || len(seen.all) != 60 {
		t.Errorf("the replicas hold %d keys after %d round trips, want 60 after 60", held, len(seen.all))
	}
}

// migration is the migration of a slot from one master to another.
type migration struct {
	*testing.T
	from, to     *redistest.Server
	fromID, toID string
	slot         int64
}

func (m migration) setSlot(s *redistest.Server, args ...any) {
	m.Helper()
	if err := s.Client(m).Do(m.Context(), append([]any{"cluster", "setslot", m.slot}, args...)...).Err(); err != nil {
		m.Fatal(err)
	}
}

func newMigration(t *testing.T, own *redistest.Cluster, key string) migration {
	slot, err := own.Client(t).ClusterKeySlot(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	m := migration{T: t, from: own.Masters[0], to: own.Masters[1], slot: slot}
	if slot >= 8192 {
		m.from, m.to = m.to, m.from
	}
	for s, id := range map[*redistest.Server]*string{m.from: &m.fromID, m.to: &m.toID} {
		if *id, err = s.Client(t).Do(t.Context(), "cluster", "myid").Text(); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// TestDurableDuringMigration checks that each call runs once, on the node it is redirected to.
func TestDurableDuringMigration(t *testing.T) {
	own := redistest.StartCluster(t, 2)
	p := New(own.Client(t), Options{ReplicaTimeout: time.Millisecond})
	s := durable(t, count)
	const key = "{moves}n"
	incr := func(want int64) {
		t.Helper()
		if n, err := evalOne(t, p, s, key); n != want || !errors.Is(err, ErrNotReplicated) {
			t.Errorf("%v, %v; want %d and ErrNotReplicated", n, err, want)
		}
	}
	m := newMigration(t, own, key)
	incr(1)
	if err := own.Client(t).Del(t.Context(), key).Err(); err != nil {
		t.Fatal(err)
	}
	m.setSlot(m.to, "importing", m.fromID)
	m.setSlot(m.from, "migrating", m.toID)
	incr(1) // ASK: the old node does not have the key
	incr(2)
	for _, node := range []*redistest.Server{m.to, m.from} {
		m.setSlot(node, "node", m.toID)
	}
	incr(3) // MOVED
	incr(4)
	if n, err := m.to.Client(t).Get(t.Context(), key).Int(); n != 4 || err != nil {
		t.Errorf("%d, %v at the new node; want 4", n, err)
	}
}

// TestRedirectsEnd checks the limit of redirects if two nodes redirect a call to each other.
func TestRedirectsEnd(t *testing.T) {
	own := redistest.StartCluster(t, 2)
	seen := &trips{}
	p := New(own.Client(t), Options{Observe: seen.observe})
	m := newMigration(t, own, "n")
	m.setSlot(m.to, "node", m.toID) // the other node does not know
	m.setSlot(m.from, "migrating", m.toID)
	m.setSlot(m.to, "node", m.fromID)
	_, err := evalOne(t, p, durable(t, count), "n")
	if _, ask := redis.IsAskError(err); !ask {
		if _, moved := redis.IsMovedError(err); !moved {
			t.Errorf("%v, want the Cluster's last redirect", err)
		}
	}
	if n := len(seen.all); n != 1+maxRedirects {
		t.Errorf("%d round trips, want %d", n, 1+maxRedirects)
	}
}

// TestDurableAfterFailover checks that confirmed writes survive, and that calls find the new
// master.
func TestDurableAfterFailover(t *testing.T) {
	own := redistest.StartReplicatedCluster(t, 3)
	p := New(own.Client(t), Options{ReplicaTimeout: 200 * time.Millisecond})
	s := durable(t, count)
	slot, err := own.Client(t).ClusterKeySlot(t.Context(), "n").Result()
	if err != nil {
		t.Fatal(err)
	}
	for want := range int64(20) {
		if n, err := evalOne(t, p, s, "n"); n != want+1 || err != nil {
			t.Fatal(n, err)
		}
	}
	own.Masters[slot*3/16384].Kill()
	for {
		n, err := evalOne(t, p, s, "n")
		if err == nil || errors.Is(err, ErrNotReplicated) {
			if n != int64(21) || err == nil {
				t.Errorf("%v, %v; want 21 and ErrNotReplicated", n, err)
			}
			return
		}
	}
}
