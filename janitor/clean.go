package janitor

import (
	"context"
	"slices"
	"sync"
)

// mostCounted is how many channels or clients of one dead server a dry run looks at.
const mostCounted = 100_000

// clean releases what a dead server held and then forgets it. The server stays listed
// while anything is left, so the next round goes on where this one stopped.
func (j *Janitor) clean(ctx context.Context, server string, did *tally) error {
	r := j.opts.Registry
	channels := func(n int) ([]string, error) { return r.HeldChannels(ctx, server, n) }
	if err := j.drain(ctx, channels, func(channel string) error {
		if !j.opts.DryRun {
			if err := r.UnbindChannel(ctx, server, channel); err != nil {
				return err
			}
		}
		did.channels.Add(1)
		return nil
	}); err != nil {
		return err
	}
	clients := func(n int) ([]string, error) { return r.HeldClients(ctx, server, n) }
	if err := j.drain(ctx, clients, func(client string) error {
		return j.release(ctx, server, client, did)
	}); err != nil {
		return err
	}
	if !j.opts.DryRun {
		if err := r.Forget(ctx, server); err != nil {
			return err
		}
	}
	did.forgotten.Add(1)
	return nil
}

// release takes one client from a dead server. The user's entry comes first, by the
// generation in the record: once the record is released nothing says whose the
// client was, and a janitor cut off in between would leave the entry as it is.
func (j *Janitor) release(ctx context.Context, server, client string, did *tally) error {
	r, q := j.opts.Registry, j.opts.Queue
	c, known, err := q.Client(ctx, client)
	if err != nil {
		return err
	}
	if known && c.Server == server {
		if j.opts.DryRun {
			did.clients.Add(1)
			return nil
		}
		if c.User != "" {
			if err := r.ReleaseUser(ctx, c.User, client, c.Generation); err != nil {
				return err
			}
		}
		_, _, released, err := q.Release(ctx, client, server)
		if err != nil {
			return err
		}
		if released { // else it has just moved, or another janitor was faster
			did.clients.Add(1)
		}
	}
	if j.opts.DryRun {
		return nil
	}
	return r.DropClient(ctx, server, client)
}

// drain calls do for all that list hands out, a chunk at a time, until nothing is left
// that has not failed. list gives any n of those that remain, the failed ones among them,
// so it is asked for that many more. When a whole chunk fails, the store is away.
func (j *Janitor) drain(ctx context.Context, list func(n int) ([]string, error), do func(name string) error) error {
	var errs problems
	var mu sync.Mutex
	failed := map[string]bool{}
	each := func(names []string) {
		j.each(ctx, names, func(name string) {
			if err := do(name); err != nil {
				errs.add(err)
				mu.Lock()
				defer mu.Unlock()
				failed[name] = true
			}
		})
	}
	if j.opts.DryRun { // nothing gets less, so all at once
		names, err := list(mostCounted)
		if err == nil {
			each(names)
		}
		return errs.join(ctx, err)
	}
	for ctx.Err() == nil {
		before := len(failed)
		names, err := list(j.opts.Chunk + before)
		if err != nil {
			return errs.join(ctx, err)
		}
		names = slices.DeleteFunc(names, func(name string) bool { return failed[name] })
		if len(names) == 0 {
			break
		}
		each(names)
		if len(failed)-before == len(names) {
			break
		}
	}
	return errs.join(ctx)
}
