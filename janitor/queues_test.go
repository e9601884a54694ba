package janitor

import (
	"fmt"
	"testing"
	"time"

	"switchboard/queue"
)

// push stores n messages and returns their ids.
func (e *env) push(channel string, n int) (ids []int64) {
	e.Helper()
	for i := range n {
		a, err := e.queue.AppendChannel(e.Context(), queue.ChannelPush{Channel: channel, Data: fmt.Appendf(nil, "%d", i)})
		e.ok(err)
		ids = append(ids, a.ID)
	}
	return ids
}

func TestTrim(t *testing.T) {
	eachStore(t, func(e *env) {
		e.addServer("a", 3, 0)
		long, short := e.push("c0", 10), e.push("c1", 4)
		j := e.janitor(func(o *Options) { o.MaxCount = 4 })
		equal(e, "too many", e.round(j.QueuesRound), Report{Trimmed: 6})
		equal(e, "again", e.round(j.QueuesRound), Report{})

		p, err := e.queue.ReadChannel(e.Context(), "c0", long[0], 100)
		e.ok(err)
		equal(e, "floor", p.Floor, long[5])
		equal(e, "messages", len(p.Messages), 4)
		equal(e, "complete", p.Complete, false)

		// Ids have a resolution of 1 ms. Wait until all messages are older than MaxAge.
		dry := e.janitor(func(o *Options) { o.MaxAge, o.DryRun = time.Nanosecond, true })
		for e.round(dry.QueuesRound) != (Report{Trimmed: 8, DryRun: true}) {
		}
		equal(e, "too old", e.round(e.janitor(func(o *Options) { o.MaxAge = time.Nanosecond }).QueuesRound), Report{Trimmed: 8})
		p, err = e.queue.ReadChannel(e.Context(), "c1", 0, 100)
		e.ok(err)
		equal(e, "floor", p.Floor, short[3])
		equal(e, "messages", len(p.Messages), 0)
		equal(e, "complete", p.Complete, false)
	})
}

func TestOrphansAreRemoved(t *testing.T) {
	eachStore(t, func(e *env) {
		ctx := e.Context()
		e.addServer("live", 2, 0)
		e.addServer("suspected", 2, 0) // listed, but without a lease: left to ServersRound
		e.expireLease("suspected")
		for i := range 3 { // neither listed nor leased
			e.ok(e.registry.BindChannel(ctx, "unknown", fmt.Sprintf("c%d", i)))
		}
		dry := e.janitor(func(o *Options) { o.DryRun = true })
		equal(e, "dry run", e.round(dry.QueuesRound), Report{Orphans: 3, DryRun: true})
		equal(e, "unchanged", e.serversOf("c0"), []string{"live", "suspected", "unknown"})

		j := e.janitor(nil)
		equal(e, "report", e.round(j.QueuesRound), Report{Orphans: 3})
		equal(e, "again", e.round(j.QueuesRound), Report{})
		equal(e, "c0", e.serversOf("c0"), []string{"live", "suspected"})
		equal(e, "c2", len(e.serversOf("c2")), 0)
		names, _, err := e.registry.Channels(ctx, "", "", 100)
		e.ok(err)
		equal(e, "ch_list", len(names), 2)
	})
}

func TestQueuesRoundPages(t *testing.T) {
	eachStore(t, func(e *env) {
		e.addServer("live", 0, 0)
		const n = 2*pageSize + 10
		j := e.janitor(nil)
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("many%d", i)
		}
		j.each(e.Context(), names, func(channel string) {
			if err := e.registry.BindChannel(e.Context(), "gone", channel); err != nil {
				e.Error(err)
			}
		})
		equal(e, "report", e.round(j.QueuesRound), Report{Orphans: n})
		equal(e, "again", e.round(j.QueuesRound), Report{})
	})
}

func TestChannelWithoutServersIsPruned(t *testing.T) {
	client := single.Client(t)
	e := redisEnv(t, client)
	prefix := fmt.Sprintf("t%d:", prefixes.Load())
	e.addServer("live", 1, 0)
	e.ok(client.SAdd(t.Context(), prefix+"ch_list", "empty").Err()) // as after a crash between the writes of two keys
	dry := e.janitor(func(o *Options) { o.DryRun = true })
	equal(e, "dry run", e.round(dry.QueuesRound), Report{Pruned: 1, DryRun: true})
	equal(e, "report", e.round(e.janitor(nil).QueuesRound), Report{Pruned: 1})
	equal(e, "again", e.round(e.janitor(nil).QueuesRound), Report{})
}
