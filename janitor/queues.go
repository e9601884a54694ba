package janitor

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"switchboard/queue"
)

// Queue has the methods of a queue that a janitor calls. [queue.Redis] and [queue.Memory] implement
// it.
type Queue interface {
	TrimChannel(ctx context.Context, channel string, maxAge time.Duration, maxCount int, dryRun bool) (int, error)
	Client(ctx context.Context, client string) (c queue.Client, known bool, err error)
	Release(ctx context.Context, client, server string) (user string, generation int64, released bool, err error)
	StateChannels(ctx context.Context) iter.Seq2[string, error]
	StateServers(ctx context.Context, channel string) ([]string, error)
	StepStates(ctx context.Context, steps []queue.StateStep) []queue.Outcome[queue.Appended]
}

// pageSize is how many channels are fetched at a time.
const pageSize = 500

// QueuesRound trims and prunes each listed channel once. Errors do not stop the round, as in
// ServersRound.
func (j *Janitor) QueuesRound(ctx context.Context) (Report, error) {
	return j.measured(queues, func(counts *counters) error {
		cache, err := j.newServerCache(ctx)
		if err != nil {
			return err
		}
		var errs errorList
		if !j.opts.DryRun {
			if _, err := j.opts.Registry.MoveChannelList(ctx); err != nil {
				errs.add(err)
			}
		}
		for cursor := ""; ctx.Err() == nil; {
			channels, next, err := j.opts.Registry.Channels(ctx, "", cursor, pageSize)
			if err != nil { // in a Cluster, other sets of the list may be read
				errs.add(err)
			}
			j.each(ctx, channels, func(channel string) {
				if err := j.cleanChannel(ctx, channel, cache, counts); err != nil {
					errs.add(err)
				}
			})
			if cursor = next; cursor == "" {
				break
			}
		}
		return errs.join(ctx)
	})
}

// cleanChannel trims a channel, removes orphans from it, and removes the channel from the list if
// it has no servers.
func (j *Janitor) cleanChannel(ctx context.Context, channel string, cache *serverCache, counts *counters) error {
	trimmed, err := j.opts.Queue.TrimChannel(ctx, channel, j.opts.MaxAge, j.opts.MaxCount, j.opts.DryRun)
	counts.add(Report{Trimmed: trimmed}) // may be positive with an error, too
	if err != nil {
		return err
	}
	bound, err := j.opts.Registry.ChannelServers(ctx, channel)
	if err != nil {
		return err
	}
	for _, server := range bound {
		orphan, err := cache.orphan(ctx, server)
		if err != nil {
			return err
		}
		if !orphan {
			continue
		}
		if !j.opts.DryRun {
			if err := j.opts.Registry.UnbindChannel(ctx, server, channel); err != nil {
				return err
			}
		}
		counts.add(Report{Orphans: 1})
	}
	if len(bound) > 0 {
		return nil // UnbindChannel of the last server has removed the channel from the list
	}
	pruned := j.opts.DryRun
	if !pruned {
		if pruned, err = j.opts.Registry.PruneChannel(ctx, channel); err != nil {
			return err
		}
	}
	if pruned {
		counts.add(Report{Pruned: 1})
	}
	return nil
}

// serverCache queries each server once in a round.
type serverCache struct {
	registry Servers

	mu    sync.Mutex      // guards the field below
	known map[string]bool // whether a server is listed or has a lease
}

// newServerCache returns a cache that contains the listed servers.
func (j *Janitor) newServerCache(ctx context.Context) (*serverCache, error) {
	listed, err := j.opts.Registry.Listed(ctx)
	if err != nil {
		return nil, err
	}
	c := &serverCache{registry: j.opts.Registry, known: map[string]bool{}}
	for _, server := range listed {
		c.known[server] = true
	}
	return c, nil
}

// orphan reports whether a server is neither listed nor leased. A dead server that is still listed
// is not an orphan: ServersRound cleans up after it.
func (c *serverCache) orphan(ctx context.Context, server string) (bool, error) {
	c.mu.Lock()
	known, cached := c.known[server]
	c.mu.Unlock()
	if cached {
		return !known, nil
	}
	_, known, err := c.registry.Lease(ctx, server)
	if err != nil {
		return false, err
	}
	if !known { // it may have joined during the round and lost its lease since
		listed, err := c.registry.Listed(ctx)
		if err != nil {
			return false, err
		}
		known = slices.Contains(listed, server)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[server] = known
	return !known, nil
}
