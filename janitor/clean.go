package janitor

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// maxDryRun limits how many channels of a dead server a dry run counts. It limits the clients too.
const maxDryRun = 100_000

// clean removes the bindings of a dead server and then the server. The server stays listed until
// all bindings are removed, so that the next round continues where this one stopped.
func (j *Janitor) clean(ctx context.Context, server string, counts *counters) error {
	r := j.opts.Registry
	channels := func(n int) ([]string, error) { return r.HeldChannels(ctx, server, n) }
	err := j.removeAll(ctx, channels, func(channel string) error {
		// Before the unbinding: by the binding, another janitor finds the channel again.
		if err := j.endOwners(ctx, server, channel, counts); err != nil {
			return err
		}
		if !j.opts.DryRun {
			if err := r.UnbindChannel(ctx, server, channel); err != nil {
				return err
			}
		}
		counts.add(Report{Channels: 1})
		return nil
	})
	if err := errors.Join(err, j.notifyStates(ctx, counts)); err != nil {
		return err
	}
	clients := func(n int) ([]string, error) { return r.HeldClients(ctx, server, n) }
	if err := j.removeAll(ctx, clients, func(client string) error {
		return j.release(ctx, server, client, counts)
	}); err != nil {
		return err
	}
	if !j.opts.DryRun {
		if err := r.Forget(ctx, server); err != nil {
			return err
		}
	}
	counts.add(Report{Forgotten: 1})
	return nil
}

// release releases a client from a dead server: first the client's entry at its user, then the
// client's record. In the reverse order, a janitor that is stopped between the two steps would
// leave the entry: the next one could not find it, because a released record does not name the
// user.
func (j *Janitor) release(ctx context.Context, server, client string, counts *counters) error {
	r, q := j.opts.Registry, j.opts.Queue
	c, known, err := q.Client(ctx, client)
	if err != nil {
		return err
	}
	if known && c.Server == server {
		if j.opts.DryRun {
			counts.add(Report{Clients: 1})
			return nil
		}
		if c.User != "" {
			// Servers that watch the user know by the lease of the dead server that the client is gone.
			if _, err := r.ReleaseUser(ctx, c.User, client, c.Generation); err != nil {
				return err
			}
		}
		_, _, released, err := q.Release(ctx, client, server)
		if err != nil {
			return err
		}
		if released { // else the client has moved, or another janitor has released it
			counts.add(Report{Clients: 1})
		}
	}
	if j.opts.DryRun {
		return nil
	}
	return r.DropClient(ctx, server, client)
}

// removeAll calls remove for all names that list returns, a chunk at a time, until only failed
// names are left. list returns any n of the remaining names. They may include failed ones, so
// removeAll adds the number of failed names to n. If all names of a chunk fail, it stops: the store
// is unavailable.
func (j *Janitor) removeAll(ctx context.Context, list func(n int) ([]string, error), remove func(name string) error) error {
	var errs errorList
	var mu sync.Mutex
	failed := map[string]bool{}
	removeChunk := func(names []string) {
		j.each(ctx, names, func(name string) {
			if err := remove(name); err != nil {
				errs.add(err)
				mu.Lock()
				defer mu.Unlock()
				failed[name] = true
			}
		})
	}
	if j.opts.DryRun { // list always returns the same names, so one call must return all
		names, err := list(maxDryRun)
		if err == nil {
			removeChunk(names)
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
		removeChunk(names)
		if len(failed)-before == len(names) {
			break
		}
	}
	return errs.join(ctx)
}
