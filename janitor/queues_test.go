package janitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/queue"
	"switchboard/registry"
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

// countedTrims counts the trims of each channel.
type countedTrims struct {
	Queue
	mu    sync.Mutex // guards the field below
	trims map[string]int
}

func (q *countedTrims) TrimChannel(ctx context.Context, channel string, maxAge time.Duration, maxCount int, dryRun bool) (int, error) {
	q.mu.Lock()
	q.trims[channel]++
	q.mu.Unlock()
	return q.Queue.TrimChannel(ctx, channel, maxAge, maxCount, dryRun)
}

// TestEachChannelIsTrimmedOnce checks that a round in a Cluster trims each channel once: those that
// servers of a former version have bound, those of new ones and those of both, before and after the
// last server of the former version leaves. The round after that moves what is left.
func TestEachChannelIsTrimmedOnce(t *testing.T) {
	ctx, client := t.Context(), cluster.Client(t)
	e := redisEnv(t, client)
	prefix := fmt.Sprintf("t%d:", prefixes.Load())
	e.addServer("new", 0, 0)
	e.ok(client.SAdd(ctx, prefix+"s_list", "old").Err())
	e.ok(client.HSet(ctx, prefix+"s_{old}", "host", "old:1", "can", "changes").Err())
	e.registry.(*registry.Redis).KeepChannelList(false)
	const n = 1500 // of each kind
	var list []string
	for i := range n {
		theirs, both, ours := fmt.Sprint("theirs-", i), fmt.Sprint("both-", i), fmt.Sprint("ours-", i)
		list = append(list, theirs, both, ours)
	}
	e.janitor(nil).each(ctx, list, func(channel string) {
		if !strings.HasPrefix(channel, "theirs") {
			if err := e.registry.BindChannel(ctx, "new", channel); err != nil {
				e.Error(err)
			}
		}
		if !strings.HasPrefix(channel, "ours") { // as the release before the sets
			if err := errors.Join(client.SAdd(ctx, prefix+"ch_{"+channel+"}", "old").Err(), client.SAdd(ctx, prefix+"ch_list", channel).Err()); err != nil {
				e.Error(err)
			}
		}
	})
	round := func(what string, dryRun bool) {
		e.Helper()
		counted := &countedTrims{Queue: e.queue, trims: map[string]int{}}
		j := e.janitor(func(o *Options) { o.Queue, o.DryRun = counted, dryRun })
		equal(e, what, e.round(j.QueuesRound), Report{DryRun: dryRun})
		equal(e, what+": channels", len(counted.trims), len(list))
		for channel, trims := range counted.trims {
			if trims != 1 {
				e.Errorf("%s: %s is trimmed %d times", what, channel, trims)
			}
		}
	}
	listed := func() int64 { return client.SCard(ctx, prefix+"ch_list").Val() }
	round("beside a former version", false)
	equal(e, "ch_list beside a former version", listed(), 2*n)

	e.ok(client.HSet(ctx, prefix+"s_{old}", "can", "changes,channel_sets").Err()) // as if a new one had bound them
	round("dry run", true)
	equal(e, "ch_list after a dry run", listed(), 2*n)
	round("after the former version", false)
	equal(e, "ch_list", client.Exists(ctx, prefix+"ch_list").Val(), 0)
	round("again", false)
}

// unreadableSet is a registry of which a part of the list of channels cannot be read.
type unreadableSet struct {
	Registry
	failed bool
}

func (r *unreadableSet) Channels(ctx context.Context, prefix, cursor string, limit int) ([]string, string, error) {
	if set, _, inSet := strings.Cut(cursor, ":"); inSet && !r.failed {
		n, err := strconv.Atoi(set)
		r.failed = true
		return nil, fmt.Sprintf("%d:0", n+8), errors.Join(err, fmt.Errorf("8 sets from %s on cannot be read", set))
	}
	return r.Registry.Channels(ctx, prefix, cursor, limit)
}

// TestUnreadableSet checks that a round goes on after a set of the list that it cannot read, and
// fails.
func TestUnreadableSet(t *testing.T) {
	e := redisEnv(t, cluster.Client(t))
	e.addServer("live", 0, 0)
	e.janitor(nil).each(e.Context(), slices.Collect(func(yield func(string) bool) {
		for i := 0; i < 2*pageSize && yield(fmt.Sprint("many", i)); i++ {
		}
	}), func(channel string) {
		if err := e.registry.BindChannel(e.Context(), "gone", channel); err != nil {
			e.Error(err)
		}
	})
	broken := &unreadableSet{Registry: e.registry}
	report, err := e.janitor(func(o *Options) { o.Registry = broken }).QueuesRound(e.Context())
	if err == nil || report.Orphans < 2*pageSize*3/4 || report.Orphans == 2*pageSize {
		t.Errorf("%d orphans, %v", report.Orphans, err)
	}
}
