package registry

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// NotifyStates tells live servers that states of their channels have changed. They notice it at
// their next beat, see Changes. Others are ignored. Call it after the changes are stored.
func (r *Redis) NotifyStates(ctx context.Context, servers []string) error {
	group, groupCtx := errgroup.WithContext(ctx)
	for _, server := range servers {
		group.Go(func() error {
			_, err := r.pipe.EvalInt(groupCtx, notifyStatesScript, []string{r.keys.lease(server)})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("notify servers of changed states: %w", err)
	}
	return nil
}

// Leave removes the server from the list of live servers, then the lease, s_ch_ and s_c_, then its
// entry in s_list. The server calls it last, after it unbound everything: a binding made after
// Leave is never cleaned up.
func (r *Redis) Leave(ctx context.Context, server string) error {
	if err := r.remove(ctx, server); err != nil {
		return fmt.Errorf("leave of server %s: %w", server, err)
	}
	return nil
}

// Forget removes what is left of a dead server as Leave does, with its entry in s_list last. The
// tombstone stays, and Died returns the server from now on.
func (r *Redis) Forget(ctx context.Context, server string) error {
	_, err := r.pipe.EvalInt(ctx, buryScript, []string{r.keys.died()}, server, diedKeep.Milliseconds(), maxDied)
	if err == nil {
		err = r.remove(ctx, server)
	}
	if err != nil {
		return fmt.Errorf("forget server %s: %w", server, err)
	}
	return nil
}

// Died returns the servers that have died in the last 24 h, the latest first, up to 1000. A server
// in s_list without a lease is not one of them before its bindings are removed.
func (r *Redis) Died(ctx context.Context) ([]Death, error) {
	reply, err := r.pipe.EvalArray(ctx, diedScript, []string{r.keys.died()}, diedKeep.Milliseconds())
	var list []Death
	for err == nil && reply.Len() > 0 {
		list = append(list, Death{reply.Text(), time.UnixMilli(reply.Int()).UTC()})
		err = reply.Err
	}
	if err != nil {
		return nil, fmt.Errorf("servers that died: %w", err)
	}
	return list, nil
}

// remove deletes the entry in s_list last: as long as the server is in the list, a janitor retries
// the cleanup.
func (r *Redis) remove(ctx context.Context, server string) error {
	if _, err := r.pipe.EvalInt(ctx, endListedScript, r.listKeys(), server); err != nil {
		return err
	}
	if _, err := r.count(ctx, "unlink",
		r.keys.heldChannels(server), r.keys.heldClients(server), r.keys.lease(server)); err != nil {
		return err
	}
	_, err := r.count(ctx, "srem", r.keys.serverList(), server)
	return err
}

// Servers returns the live servers, sorted by id: those in s_list that have a lease.
func (r *Redis) Servers(ctx context.Context) ([]Server, error) {
	live, err := r.servers(ctx)
	if err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	return live, nil
}

func (r *Redis) servers(ctx context.Context) ([]Server, error) {
	ids, err := r.names(ctx, "smembers", r.keys.serverList())
	if err != nil {
		return nil, err
	}
	leases := make([]map[string]string, len(ids))
	group, ctx := errgroup.WithContext(ctx)
	for i, id := range ids {
		group.Go(func() (err error) {
			leases[i], err = r.fields(ctx, r.keys.lease(id))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var live []Server
	for i, fields := range leases {
		if len(fields) > 0 {
			live = append(live, parseServer(ids[i], fields))
		}
	}
	return live, nil
}

// Listed returns the ids in s_list, live or not, sorted.
func (r *Redis) Listed(ctx context.Context) ([]string, error) {
	ids, err := r.names(ctx, "smembers", r.keys.serverList())
	if err != nil {
		return nil, fmt.Errorf("listed servers: %w", err)
	}
	return ids, nil
}

// Lease returns the description of a server and whether the server has a lease. Without a lease the
// description is empty.
func (r *Redis) Lease(ctx context.Context, server string) (Server, bool, error) {
	fields, err := r.fields(ctx, r.keys.lease(server))
	if err != nil {
		return Server{}, false, fmt.Errorf("lease of server %s: %w", server, err)
	}
	if len(fields) == 0 {
		return Server{}, false, nil
	}
	return parseServer(server, fields), true, nil
}

// DeclareDead declares a server dead for Options.TombstoneTTL, unless it has a lease, and reports
// whether it did. Repeating the call is harmless.
func (r *Redis) DeclareDead(ctx context.Context, server string) (bool, error) {
	done, err := r.pipe.EvalInt(ctx, declareDeadScript, []string{r.keys.tombstone(server), r.keys.lease(server)},
		r.opts.TombstoneTTL.Milliseconds())
	if err == nil && done == 1 {
		_, err = r.pipe.EvalInt(ctx, endListedScript, r.listKeys(), server)
	}
	if err != nil {
		return false, fmt.Errorf("declare server %s dead: %w", server, err)
	}
	return done == 1, nil
}

// DeclaredDead reports whether the server was declared dead.
func (r *Redis) DeclaredDead(ctx context.Context, server string) (bool, error) {
	n, err := r.count(ctx, "exists", r.keys.tombstone(server))
	if err != nil {
		return false, fmt.Errorf("tombstone of server %s: %w", server, err)
	}
	return n == 1, nil
}
