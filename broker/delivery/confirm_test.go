package delivery

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/broker/peer"
	"switchboard/internal/slots"
	"switchboard/internal/state"
	"switchboard/queue"
)

// failingOver is a store whose master is replaced.
type failingOver struct{ *queue.Memory }

// TestConfirmAfterTwoFailovers: the marker of a loss is lost in the next failover. The next Confirm
// reports the first loss again, though the store still has a message that came after it.
func TestConfirmAfterTwoFailovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))) // ids count from 2020
		servers := func(string) []string { return []string{"me"} }
		masters := [3]*queue.Memory{}
		for i := range masters {
			masters[i] = queue.NewMemory(queue.Options{}, servers)
		}
		var epoch uint64
		all := slots.All()
		store := &failingOver{masters[0]}
		p := New(Options{
			Queue: store, Epoch: func(string) uint64 { return epoch }, Stored: func(string, time.Duration) {}, Lost: func() {},
			Self: func() string { return "me" }, Live: func(string) bool { return true }, Local: func(peer.Hint, state.Message) {},
		})
		push := func() int64 {
			t.Helper()
			time.Sleep(time.Second)
			r, err := p.ToChannel(t.Context(), "news", Payload{Data: []byte("1")})
			if err != nil {
				t.Fatal(err)
			}
			return r.ID
		}
		failOver := func() { epoch++; store.Memory = masters[epoch] }
		confirm := func(want int) {
			t.Helper()
			time.Sleep(time.Second)
			if losses, err := p.Confirm(t.Context(), &all); err != nil || losses != want {
				t.Fatalf("%d losses, want %d; %v", losses, want, err)
			}
		}

		lost := push()
		failOver()
		held := push()
		if r, err := masters[2].AppendChannel(t.Context(), queue.ChannelPush{Channel: "news", Data: []byte("1")}); err != nil || r.ID != held {
			t.Fatalf("the next master has the message as %d, want %d; %v", r.ID, held, err)
		}
		confirm(1)
		failOver() // before the next master has the marker
		confirm(2) // the marker, and the message that it reported
		if !reported(t, store, lost) {
			t.Errorf("no marker reports %d", lost)
		}
		confirm(0)
	})
}

// reported reports whether a marker of channel news covers a message.
func reported(t *testing.T, store *failingOver, id int64) bool {
	page, err := store.ReadChannel(context.Background(), "news", 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range page.Messages {
		if after, to, lost := queue.Loss(m.Data); lost && after < id && id <= to {
			return true
		}
	}
	return false
}

// TestReportedLossesAreForgotten: a reported loss is remembered for keepTime, and not longer than
// two of them.
func TestReportedLossesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newStoredLog(nil, nil)
		key := queueKey{peer.Client, "phone"}
		time.Sleep(keepTime / 2)
		l.addReported(key, 1, 2)
		for i, want := range []int{1, 0} {
			time.Sleep(keepTime * time.Duration(i+1) / 2)
			l.rotate()
			if n := len(l.reportedLosses(key)); n != want {
				t.Errorf("%d reported losses after rotation %d, want %d", n, i+1, want)
			}
		}
		if len(l.reported) > 0 {
			t.Error("the queue is still listed")
		}
	})
}

// TestConfirmOfSlots checks that Confirm asks only for the messages in the slots, and that a
// history ends only in the slots of a failover.
func TestConfirmOfSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
		servers := func(string) []string { return []string{"me"} }
		store := &failingOver{queue.NewMemory(queue.Options{}, servers)}
		epochs := map[string]uint64{}
		p := New(Options{
			Queue: store, Epoch: func(name string) uint64 { return epochs[name] }, Stored: func(string, time.Duration) {}, Lost: func() {},
			Self: func() string { return "me" }, Live: func(string) bool { return true }, Local: func(peer.Hint, state.Message) {},
		})
		push := func(channel string) int64 {
			t.Helper()
			time.Sleep(time.Second)
			r, err := p.ToChannel(t.Context(), channel, Payload{Data: []byte("1")})
			if err != nil {
				t.Fatal(err)
			}
			return r.ID
		}
		push("news")
		push("chat")
		store.Memory = queue.NewMemory(queue.Options{}, servers) // loses both
		var of, others slots.Set
		of.Add(slots.Of("news"), slots.Of("news"))
		others.Add(slots.Of("chat"), slots.Of("chat"))
		epochs["news"]++
		push("news")
		if n := len(p.log.recent[queueKey{peer.Channel, "news"}].earlier); n != 1 {
			t.Errorf("news has %d earlier histories, want 1", n)
		}
		for _, step := range []struct {
			of   *slots.Set
			want int
		}{{&of, 1}, {&of, 0}, {&others, 1}} {
			if losses, err := p.Confirm(t.Context(), step.of); err != nil || losses != step.want {
				t.Errorf("%d losses, want %d; %v", losses, step.want, err)
			}
		}
	})
}
