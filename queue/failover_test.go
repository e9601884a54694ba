package queue

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
)

// TestLossBelowAcknowledged checks that ConfirmClient finds a loss although the client acknowledged
// a message that was stored after the failover.
func TestLossBelowAcknowledged(t *testing.T) {
	t.Run("no marker before the new messages", func(t *testing.T) { lossBelowAcknowledged(t, false) })
	t.Run("a marker before the new messages", func(t *testing.T) { lossBelowAcknowledged(t, true) })
}

func lossBelowAcknowledged(t *testing.T, markerFirst bool) {
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	var replaced atomic.Bool // set by the first connection to the replica
	opts := Options{Replaced: replaced.Load}
	before := NewRedis(redispipe.New(master.Client(t), redispipe.Options{}), opts)
	after := overPromoted(t, replica, &replaced)

	generation := must(bind(t.Context(), before, Claim{Client: "phone", User: "", Server: "b1"}))(t).Generation
	kept := must(before.AppendClient(t.Context(), ClientPush{Client: "phone", Data: []byte("1"), Durable: true}))(t).ID
	must(before.Ack(t.Context(), "phone", generation, kept))(t)
	// From here on the two servers have different histories.
	ok(t, replica.Client(t).Do(t.Context(), "replicaof", "no", "one").Err())
	lost := send(t, before, "phone", 3)
	master.Kill()

	if markerFirst {
		// Another server confirms the first lost message before this one stores new messages.
		if m := must(after.ConfirmClient(t.Context(), "phone", lost[0]))(t); m == nil {
			t.Fatal("the first loss is not found")
		}
	}
	found := send(t, after, "phone", 3)
	must(after.Ack(t.Context(), "phone", generation, found[2]))(t)
	for _, id := range append(found, kept) {
		if m := must(after.ConfirmClient(t.Context(), "phone", id))(t); m != nil {
			t.Errorf("%d was acknowledged: %+v", id, m)
		}
	}
	m := must(after.ConfirmClient(t.Context(), "phone", lost[2]))(t)
	if m == nil {
		t.Fatal("the loss is not found")
	}
	from, to, _ := Loss(m.Data)
	equal(t, "from", from, kept)
	equal(t, "to", to, lost[2])
	equal(t, "id before the marker", m.Prev, found[2])
	if again := must(after.ConfirmClient(t.Context(), "phone", lost[1]))(t); again != nil {
		t.Errorf("reported twice: %+v", again)
	}
}

// overPromoted returns a queue over a promoted replica. The first connection sets replaced.
func overPromoted(t *testing.T, replica *redistest.Server, replaced *atomic.Bool) *Redis {
	client := redis.NewClient(&redis.Options{Addr: replica.Addr, MaxRetries: -1, OnConnect: func(context.Context, *redis.Conn) error {
		replaced.Store(true)
		return nil
	}})
	t.Cleanup(func() { _ = client.Close() })
	return NewRedis(redispipe.New(client, redispipe.Options{}), Options{Replaced: replaced.Load})
}

// TestTwoLossesBelowAcknowledged is TestLossBelowAcknowledged with two failovers before any
// confirmation.
func TestTwoLossesBelowAcknowledged(t *testing.T) {
	t.Run("the first is confirmed first", func(t *testing.T) { twoLossesBelowAcknowledged(t, 0, 1) })
	t.Run("the second is confirmed first", func(t *testing.T) { twoLossesBelowAcknowledged(t, 1, 0) })
}

func twoLossesBelowAcknowledged(t *testing.T, order ...int) {
	servers := []*redistest.Server{redistest.Start(t)}
	servers = append(servers, redistest.StartReplica(t, servers[0]))
	push := func(q *Redis) int64 {
		return must(q.AppendClient(t.Context(), ClientPush{Client: "phone", Data: []byte("1"), Durable: true}))(t).ID
	}
	var replaced atomic.Bool
	first := NewRedis(redispipe.New(servers[0].Client(t), redispipe.Options{}), Options{Replaced: replaced.Load})
	generation := must(bind(t.Context(), first, Claim{Client: "phone", Server: "b1"}))(t).Generation
	kept := []int64{push(first)}
	must(first.Ack(t.Context(), "phone", generation, kept[0]))(t)
	ok(t, servers[1].Client(t).Do(t.Context(), "replicaof", "no", "one").Err())
	lost := send(t, first, "phone", 2)
	servers[0].Kill()

	servers = append(servers, redistest.StartReplica(t, servers[1]))
	second := overPromoted(t, servers[1], &replaced)
	kept = append(kept, push(second))
	must(second.Ack(t.Context(), "phone", generation, kept[1]))(t)
	kept = append(kept, push(second)) // durable: the replica has the acknowledgement too
	ok(t, servers[2].Client(t).Do(t.Context(), "replicaof", "no", "one").Err())
	lost = append(lost, send(t, second, "phone", 2)...)
	servers[1].Kill()

	third := overPromoted(t, servers[2], &replaced)
	kept = append(kept, send(t, third, "phone", 1)...)
	must(third.Ack(t.Context(), "phone", generation, kept[3]))(t)
	for _, id := range kept {
		if m := must(third.ConfirmClient(t.Context(), "phone", id))(t); m != nil {
			t.Errorf("%d was acknowledged: %+v", id, m)
		}
	}
	for _, i := range order {
		last := lost[2*i+1]
		m := must(third.ConfirmClient(t.Context(), "phone", last))(t)
		if m == nil {
			t.Fatalf("loss %d is not found", i+1)
		}
		from, to, _ := Loss(m.Data)
		equal(t, "from", from, kept[2*i])
		equal(t, "to", to, last)
	}
	for _, id := range lost {
		if again := must(third.ConfirmClient(t.Context(), "phone", id))(t); again != nil {
			t.Errorf("reported twice: %+v", again)
		}
	}
}

// TestLossConfirmedAfterSecondFailover checks that a loss of the first failover is reported once,
// although no message was stored after the second failover.
func TestLossConfirmedAfterSecondFailover(t *testing.T) {
	servers := []*redistest.Server{redistest.Start(t)}
	servers = append(servers, redistest.StartReplica(t, servers[0]))
	push := func(q *Redis) int64 {
		return must(q.AppendClient(t.Context(), ClientPush{Client: "phone", Data: []byte("1"), Durable: true}))(t).ID
	}
	var replaced atomic.Bool
	first := NewRedis(redispipe.New(servers[0].Client(t), redispipe.Options{}), Options{Replaced: replaced.Load})
	generation := must(bind(t.Context(), first, Claim{Client: "phone", Server: "b1"}))(t).Generation
	kept := push(first)
	ok(t, servers[1].Client(t).Do(t.Context(), "replicaof", "no", "one").Err())
	lost := send(t, first, "phone", 2)
	servers[0].Kill()

	servers = append(servers, redistest.StartReplica(t, servers[1]))
	second := overPromoted(t, servers[1], &replaced)
	must(second.Ack(t.Context(), "phone", generation, push(second)))(t)
	push(second) // durable: the replica has the acknowledgement too
	ok(t, servers[2].Client(t).Do(t.Context(), "replicaof", "no", "one").Err())
	servers[1].Kill()

	third := overPromoted(t, servers[2], &replaced)
	m := must(third.ConfirmClient(t.Context(), "phone", lost[1]))(t)
	if m == nil {
		t.Fatal("the loss is not found")
	}
	from, to, _ := Loss(m.Data)
	equal(t, "from", from, kept)
	equal(t, "to", to, lost[1])
	for _, id := range lost {
		if again := must(third.ConfirmClient(t.Context(), "phone", id))(t); again != nil {
			t.Errorf("reported twice: %+v", again)
		}
	}
}
