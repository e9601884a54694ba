package queue

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
)

// testDurable runs without replicas: Redis stores a durable push but does not confirm it, Memory
// refuses it.
func testDurable(t *testing.T, open opener) {
	f := open(t, Options{})
	f.setServers(t, "news", "b1")
	bound(t, f, "phone")
	_, inMemory := f.contract.(*Memory)
	want, held := ErrNotReplicated, 1
	if inMemory {
		want, held = ErrNoReplicas, 0
	}
	for _, duplicate := range []bool{false, true} {
		a, err := f.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: []byte("1"), Key: "k", Durable: true})
		fails(t, "channel", err, want)
		c, err := f.AppendClient(t.Context(), ClientPush{Client: "phone", User: "alice", Data: []byte("1"), Key: "k", Durable: true})
		fails(t, "client", err, want)
		if inMemory {
			continue
		}
		p := must(f.ReadChannel(t.Context(), "news", 0, 10))(t)
		wantIDs(t, "channel", p, []int64{a.ID})
		equal(t, "servers", fmt.Sprint(a.Servers), "[b1]")
		equal(t, "duplicate", a.Duplicate, duplicate)
		equal(t, "owner", c.Server, "b1")
		equal(t, "duplicate", c.Duplicate, duplicate)
	}
	equal(t, "size", must(f.ChannelSize(t.Context(), "news"))(t), held)
	record, _, err := f.Client(t.Context(), "phone")
	ok(t, err)
	equal(t, "queued", record.Queued, held)
	if !inMemory {
		_, err = f.AppendClient(t.Context(), ClientPush{Client: "phone", User: "bob", Data: []byte("1"), Durable: true})
		fails(t, "another user's", err, ErrUnknownClient)
	}
}

// TestRedisDurableDuplicateWritesAgain checks that a durable duplicate writes its key again,
// unchanged, since a WAIT covers only writes on its own connection. A duplicate that is not durable
// writes nothing.
func TestRedisDurableDuplicateWritesAgain(t *testing.T) {
	own := redistest.Start(t).Client(t)
	f := overRedis(own, Options{})
	changes := func() int {
		t.Helper()
		info := must(own.InfoMap(t.Context(), "persistence").Result())(t)
		var n int
		must(fmt.Sscan(info["Persistence"]["rdb_changes_since_last_save"], &n))(t)
		return n
	}
	for key, push := range map[string]func(durable bool) (bool, error){
		f.keys.channelKey("news", "k"): func(durable bool) (bool, error) {
			a, err := f.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: []byte("1"), Key: "k", Durable: durable})
			return a.Duplicate, err
		},
		f.keys.clientKey("phone", "k"): func(durable bool) (bool, error) {
			a, err := f.AppendClient(t.Context(), ClientPush{Client: "phone", Data: []byte("1"), Key: "k", Durable: durable})
			return a.Duplicate, err
		},
	} {
		must(push(false))(t)
		id := must(own.Get(t.Context(), key).Result())(t)
		ok(t, own.PExpire(t.Context(), key, 2*time.Minute).Err())
		before := changes()
		equal(t, "duplicate", must(push(false))(t), true)
		equal(t, "changes by "+key, changes()-before, 0)
		_, err := push(true)
		fails(t, key, err, ErrNotReplicated)
		equal(t, "changes by durable "+key, changes()-before, 1)
		equal(t, key, must(own.Get(t.Context(), key).Result())(t), id)
		if ttl := must(own.PTTL(t.Context(), key).Result())(t); ttl <= time.Minute || ttl > 2*time.Minute {
			t.Errorf("%s lives %v, want the remaining TTL", key, ttl)
		}
	}
}

// TestRedisDurableRetry checks that each try fails while the replica is paused, and that a try with
// the same key is confirmed afterwards.
func TestRedisDurableRetry(t *testing.T) {
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	q := NewRedis(redispipe.New(master.Client(t), redispipe.Options{ReplicaTimeout: 20 * time.Millisecond}), Options{})
	ok(t, replica.Pause())
	channel := ChannelPush{Channel: "news", Data: []byte("1"), Key: "k", Durable: true}
	client := ClientPush{Client: "phone", Data: []byte("1"), Key: "k", Durable: true}
	var first Appended
	for try := range 3 {
		a, err := q.AppendChannel(t.Context(), channel)
		fails(t, "channel", err, ErrNotReplicated)
		equal(t, "duplicate", a.Duplicate, try > 0)
		c, err := q.AppendClient(t.Context(), client)
		fails(t, "client", err, ErrNotReplicated)
		equal(t, "duplicate", c.Duplicate, try > 0)
		first.ID = max(first.ID, a.ID)
		equal(t, "id", a.ID, first.ID)
	}
	ok(t, replica.Resume())
	for confirmed := false; !confirmed; {
		a, err := q.AppendChannel(t.Context(), channel)
		if confirmed = err == nil; !confirmed {
			fails(t, "channel", err, ErrNotReplicated)
		}
		equal(t, "id", a.ID, first.ID)
		equal(t, "duplicate", a.Duplicate, true)
	}
	onReplica := NewRedis(redispipe.New(replica.Client(t), redispipe.Options{}), Options{})
	wantIDs(t, "on the replica", must(onReplica.ReadChannel(t.Context(), "news", 0, 10))(t), []int64{first.ID})
}

// pushers make durable pushes concurrently until stop, and record the acknowledged ids.
type pushers struct {
	sync.WaitGroup
	stop        chan struct{}
	many        chan struct{} // closed when 2000 pushes were acknowledged
	unconfirmed chan struct{} // closed after the first ErrNotReplicated

	mu    sync.Mutex         // guards the fields below
	acked map[string][]int64 // by channel
	total int
}

func startPushers(t *testing.T, q contract) *pushers {
	p := &pushers{
		stop: make(chan struct{}), many: make(chan struct{}), unconfirmed: make(chan struct{}),
		acked: make(map[string][]int64),
	}
	var once sync.Once
	for i := range 64 {
		channel := fmt.Sprint("c", i%8)
		p.Go(func() {
			for {
				a, err := q.AppendChannel(t.Context(), ChannelPush{Channel: channel, Data: []byte("1"), Durable: true})
				switch {
				case err == nil:
					p.mu.Lock()
					p.acked[channel] = append(p.acked[channel], a.ID)
					if p.total++; p.total == 2000 {
						close(p.many)
					}
					p.mu.Unlock()
				case errors.Is(err, ErrNotReplicated):
					once.Do(func() { close(p.unconfirmed) })
				}
				select {
				case <-p.stop:
					return
				default:
				}
			}
		})
	}
	return p
}

// TestRedisDurableSurvivesFailover kills the master. The replica must have all acknowledged durable
// pushes, but not a push that was not durable.
func TestRedisDurableSurvivesFailover(t *testing.T) {
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	q := NewRedis(redispipe.New(master.Client(t), redispipe.Options{ReplicaTimeout: 100 * time.Millisecond}), Options{})
	p := startPushers(t, q)
	<-p.many
	// Replication stops between two messages.
	ok(t, replica.Client(t).ReplicaOf(t.Context(), "no", "one").Err())
	<-p.unconfirmed
	lost := must(q.AppendChannel(t.Context(), ChannelPush{Channel: "c0", Data: []byte("1")}))(t)
	master.Kill()
	close(p.stop)
	p.Wait()

	after := NewRedis(redispipe.New(replica.Client(t), redispipe.Options{}), Options{})
	for channel, ids := range p.acked {
		held := make(map[int64]bool)
		for page := (Page{More: true}); page.More; {
			at := int64(0)
			if n := len(page.Messages); n > 0 {
				at = page.Messages[n-1].ID
			}
			page = must(after.ReadChannel(t.Context(), channel, at, 1000))(t)
			for _, m := range page.Messages {
				held[m.ID] = true
			}
		}
		for _, id := range ids {
			if !held[id] {
				t.Errorf("%s: %d was acknowledged and is lost", channel, id)
			}
		}
		if held[lost.ID] {
			t.Error("replication did not stop: this test proves nothing")
		}
	}
}
