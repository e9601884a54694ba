package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"switchboard/broker/peer"
	"switchboard/queue"
)

// ledger stores all, and notes what came together; to those that wait for replicas it says that there are none.
type ledger struct {
	Queue
	t     *testing.T
	last  int64
	waves []string
}

func (l *ledger) outcome(data []byte, durable bool) (id int64, err error) {
	l.last++
	if string(data) == "bad" {
		return 0, errors.New("bad")
	}
	if durable {
		err = fmt.Errorf("append: %w", queue.ErrNotReplicated)
	}
	return l.last, err
}

func (l *ledger) AppendChannels(_ context.Context, pushes []queue.ChannelPush) []queue.Outcome[queue.Appended] {
	out := make([]queue.Outcome[queue.Appended], len(pushes))
	for i, p := range pushes {
		out[i].Value.ID, out[i].Err = l.outcome(p.Data, p.Durable)
		l.waves = append(l.waves, fmt.Sprintf("%d %s %s %v", len(pushes), p.Channel, p.Data, p.Durable))
	}
	return out
}

func (l *ledger) AppendClients(context.Context, []queue.ClientPush) []queue.Outcome[queue.ClientAppended] {
	l.t.Error("nothing goes to clients")
	return nil
}

// TestMany: each target's first pushes go together, then the second ones; one that fails holds up nobody, and behind one
// that waited for a replica in vain nobody waits at that target.
func TestMany(t *testing.T) {
	l := &ledger{t: t}
	p := New(Options{
		Queue: l, Self: func() string { return "me" }, Live: func(string) bool { return true },
		Local: func(peer.Hint) {}, Remote: func(string, peer.Hint) {},
		Stored: func(string, time.Duration) {}, Epoch: func() uint64 { return 1 }, Lost: func() {},
	})
	push := func(name, data string, durable bool) Push {
		return Push{Kind: Channel, Name: name, Payload: Payload{Data: []byte(data), Durable: durable}}
	}
	pushes := []Push{
		push("a", "1", true), push("a", "2", true), push("b", "bad", true), push("a", "3", false), push("b", "2", true), push("c", "1", false),
	}
	p.Many(t.Context(), pushes)
	want := []string{
		"3 a 1 true", "3 b bad true", "3 c 1 false", // who was refused did not wait
		"2 a 2 false", "2 b 2 true",
		"1 a 3 false",
	}
	if !slices.Equal(l.waves, want) {
		t.Errorf("stored %q, want %q", l.waves, want)
	}
	for i, confirmed := range []bool{false, false, false, true, false, true} {
		r := pushes[i]
		if bad := i == 2; (r.Err == nil) != confirmed || errors.Is(r.Err, queue.ErrNotReplicated) == (confirmed || bad) || (r.Channel.ID == 0) != bad {
			t.Errorf("push %d: %+v, %v", i, r.Channel, r.Err)
		}
	}
}
