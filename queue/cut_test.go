package queue

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
)

// TestAcknowledgedBehindALoss: a client that acknowledged what came after a failover has not thereby
// acknowledged what was lost in it.
func TestAcknowledgedBehindALoss(t *testing.T) {
	t.Run("one server stored", func(t *testing.T) { acknowledgedBehindALoss(t, false) })
	t.Run("two servers stored", func(t *testing.T) { acknowledgedBehindALoss(t, true) })
}

func acknowledgedBehindALoss(t *testing.T, first bool) {
	master := redistest.Start(t)
	heir := redistest.StartReplica(t, master)
	var fresh atomic.Bool // which shows with the first connection, not before
	opts := Options{Fresh: fresh.Load}
	before := NewRedis(redispipe.New(master.Client(t), redispipe.Options{}), opts)
	client := redis.NewClient(&redis.Options{Addr: heir.Addr, MaxRetries: -1, OnConnect: func(context.Context, *redis.Conn) error {
		fresh.Store(true)
		return nil
	}})
	t.Cleanup(func() { _ = client.Close() })
	after := NewRedis(redispipe.New(client, redispipe.Options{}), opts)

	generation := must(before.Bind(t.Context(), Claim{Client: "phone", User: "", Server: "b1"}))(t).Generation
	kept := must(before.AppendClient(t.Context(), ClientPush{Client: "phone", Data: []byte("1"), Durable: true}))(t).ID
	must(before.Ack(t.Context(), "phone", generation, kept))(t)
	// From here on they have histories of their own.
	ok(t, heir.Client(t).Do(t.Context(), "replicaof", "no", "one").Err())
	lost := send(t, before, "phone", 3)
	master.Kill()

	if first {
		// Another server knows of the first loss only, and its marker comes before all new messages.
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
	equal(t, "the marker stands behind", m.Prev, found[2])
	if again := must(after.ConfirmClient(t.Context(), "phone", lost[1]))(t); again != nil {
		t.Errorf("told twice: %+v", again)
	}
}
