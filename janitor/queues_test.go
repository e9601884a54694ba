package janitor

import (
	"fmt"
	"testing"
	"time"

	"switchboard/queue"
)

// push stores n messages and returns their ids.
func (w *world) push(channel string, n int) (ids []int64) {
	w.Helper()
	for i := range n {
		a, err := w.queue.AppendChannel(w.Context(), queue.ChannelPush{Channel: channel, Data: fmt.Appendf(nil, "%d", i)})
		w.ok(err)
		ids = append(ids, a.ID)
	}
	return ids
}

func TestTrimmingMovesTheFloor(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.server("a", 3, 0)
		long, short := w.push("c0", 10), w.push("c1", 4)
		j := w.janitor(func(o *Options) { o.MaxCount = 4 })
		want(w, "too many", w.round(j.QueuesRound), Report{Trimmed: 6})
		want(w, "again", w.round(j.QueuesRound), Report{})

		p, err := w.queue.ReadChannel(w.Context(), "c0", long[0], 100)
		w.ok(err)
		want(w, "floor", p.Floor, long[5])
		want(w, "held", len(p.Messages), 4)
		want(w, "complete", p.Complete, false)

		// Ids hold whole milliseconds: a message is older than nothing in the next one.
		dry := w.janitor(func(o *Options) { o.MaxAge, o.DryRun = time.Nanosecond, true })
		for w.round(dry.QueuesRound) != (Report{Trimmed: 8, DryRun: true}) {
		}
		want(w, "too old", w.round(w.janitor(func(o *Options) { o.MaxAge = time.Nanosecond }).QueuesRound), Report{Trimmed: 8})
		p, err = w.queue.ReadChannel(w.Context(), "c1", 0, 100)
		w.ok(err)
		want(w, "floor", p.Floor, short[3])
		want(w, "held", len(p.Messages), 0)
		want(w, "complete", p.Complete, false)
	})
}

func TestOrphansGoOutOfChannels(t *testing.T) {
	eachWorld(t, func(w *world) {
		ctx := w.Context()
		w.server("live", 2, 0)
		w.server("resting", 2, 0) // without a lease, and listed: not the business of this round
		w.loseLease("resting")
		for i := range 3 { // a server that nobody knows
			w.ok(w.registry.BindChannel(ctx, "unknown", fmt.Sprintf("c%d", i)))
		}
		dry := w.janitor(func(o *Options) { o.DryRun = true })
		want(w, "would", w.round(dry.QueuesRound), Report{Orphans: 3, DryRun: true})
		want(w, "unchanged", w.channelServers("c0"), []string{"live", "resting", "unknown"})

		j := w.janitor(nil)
		want(w, "did", w.round(j.QueuesRound), Report{Orphans: 3})
		want(w, "again", w.round(j.QueuesRound), Report{})
		want(w, "c0", w.channelServers("c0"), []string{"live", "resting"})
		want(w, "c2", len(w.channelServers("c2")), 0)
		names, _, err := w.registry.Channels(ctx, "", "", 100)
		w.ok(err)
		want(w, "ch_list", len(names), 2)
	})
}

func TestManyPages(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.server("live", 0, 0)
		const n = 2*page + 10
		j := w.janitor(nil)
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("many%d", i)
		}
		j.each(w.Context(), names, func(channel string) {
			if err := w.registry.BindChannel(w.Context(), "gone", channel); err != nil {
				w.Error(err)
			}
		})
		want(w, "did", w.round(j.QueuesRound), Report{Orphans: n})
		want(w, "again", w.round(j.QueuesRound), Report{})
	})
}

func TestChannelWithoutServersIsPruned(t *testing.T) {
	client := single.Client(t)
	w := redisWorld(t, client)
	prefix := fmt.Sprintf("t%d:", prefixes.Load())
	w.server("live", 1, 0)
	w.ok(client.SAdd(t.Context(), prefix+"ch_list", "left").Err()) // as a crash between two keys leaves it
	dry := w.janitor(func(o *Options) { o.DryRun = true })
	want(w, "would", w.round(dry.QueuesRound), Report{Pruned: 1, DryRun: true})
	want(w, "did", w.round(w.janitor(nil).QueuesRound), Report{Pruned: 1})
	want(w, "again", w.round(w.janitor(nil).QueuesRound), Report{})
}
