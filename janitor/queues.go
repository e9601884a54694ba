package janitor

import (
	"context"
	"slices"
	"sync"
	"time"

	"switchboard/queue"
)

// Queue is what the janitor needs of a queue.
type Queue interface {
	TrimChannel(ctx context.Context, channel string, maxAge time.Duration, maxCount int, dryRun bool) (int, error)
	Client(ctx context.Context, client string) (c queue.Client, known bool, err error)
	Release(ctx context.Context, client, server string) (user string, generation int64, released bool, err error)
}

// page is how many channels are fetched at once.
const page = 500

// QueuesRound goes over every listed channel once. Its error is as that of ServersRound.
func (j *Janitor) QueuesRound(ctx context.Context) (Report, error) {
	return j.measured(queues, func(did *tally) error {
		known, err := j.takeCensus(ctx)
		if err != nil {
			return err
		}
		var errs problems
		for cursor := ""; ctx.Err() == nil; {
			channels, next, err := j.opts.Registry.Channels(ctx, "", cursor, page)
			if err != nil {
				return errs.join(ctx, err)
			}
			j.each(ctx, channels, func(channel string) {
				if err := j.tend(ctx, channel, known, did); err != nil {
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

// tend does all that is due in one channel.
func (j *Janitor) tend(ctx context.Context, channel string, known *census, did *tally) error {
	trimmed, err := j.opts.Queue.TrimChannel(ctx, channel, j.opts.MaxAge, j.opts.MaxCount, j.opts.DryRun)
	did.trimmed.Add(int64(trimmed)) // some may have gone before an error, too
	if err != nil {
		return err
	}
	members, err := j.opts.Registry.ChannelServers(ctx, channel)
	if err != nil {
		return err
	}
	for _, server := range members {
		orphan, err := known.orphan(ctx, server)
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
		did.orphans.Add(1)
	}
	if len(members) > 0 {
		return nil // when the last one went, its unbinding took the channel out of the list
	}
	pruned := j.opts.DryRun
	if !pruned {
		if pruned, err = j.opts.Registry.PruneChannel(ctx, channel); err != nil {
			return err
		}
	}
	if pruned {
		did.pruned.Add(1)
	}
	return nil
}

// census is which servers there are, as far as one round has asked.
type census struct {
	servers Servers

	mu    sync.Mutex // guards the field below
	known map[string]bool
}

func (j *Janitor) takeCensus(ctx context.Context) (*census, error) {
	listed, err := j.opts.Registry.Listed(ctx)
	if err != nil {
		return nil, err
	}
	c := &census{servers: j.opts.Registry, known: map[string]bool{}}
	for _, server := range listed {
		c.known[server] = true
	}
	return c, nil
}

// orphan reports whether server is neither leased nor listed. The dead ones that are
// still listed are left to ServersRound.
func (c *census) orphan(ctx context.Context, server string) (bool, error) {
	c.mu.Lock()
	known, asked := c.known[server]
	c.mu.Unlock()
	if asked {
		return !known, nil
	}
	_, known, err := c.servers.Lease(ctx, server)
	if err != nil {
		return false, err
	}
	if !known { // it may have joined since the census and lost its lease already
		listed, err := c.servers.Listed(ctx)
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
