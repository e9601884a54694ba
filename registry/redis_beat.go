package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

// Join announces a server: it writes the lease and the description, and adds the server to s_list
// and to the list of live servers. It returns ErrDead if the server was declared dead.
func (r *Redis) Join(ctx context.Context, s Server) error {
	if _, err := r.renew(ctx, s, 0); err != nil {
		return fmt.Errorf("join server %s: %w", s.ID, err)
	}
	return nil
}

// Beat is Renew for a caller that does not need the changes.
func (r *Redis) Beat(ctx context.Context, s Server) error {
	_, err := r.Renew(ctx, s, 0)
	return err
}

// Renew renews the lease, and returns what has changed in the list of live servers since an earlier
// call returned a number. The number is 0 for the first call, and may be 0 for any other: then
// Renew returns all servers, writes the description of this one again, and restores what a failover
// may have lost. It must be 0 after a failover, which may set the numbers back. It must be 0 if
// Host or Version differ from the last call.
//
// Renew returns ErrDead if the server was declared dead. If the lease expired, but the server was
// not declared dead, Renew makes the server live again.
//
// It costs 9 commands, whatever the number of servers, if nothing has changed.
func (r *Redis) Renew(ctx context.Context, s Server, since int64) (Changes, error) {
	c, err := r.renew(ctx, s, since)
	if err != nil {
		return Changes{}, fmt.Errorf("beat of server %s: %w", s.ID, err)
	}
	return c, nil
}

// renew renews s_{id} first if the server may not be in the list of live servers: a server that was
// declared dead must not get back into the list.
func (r *Redis) renew(ctx context.Context, s Server, since int64) (Changes, error) {
	if since > 0 {
		c, now, err := r.renewListed(ctx, s, since, "")
		if err != nil {
			return Changes{}, err
		}
		if now != "" {
			err = r.renewLease(ctx, s, now, &c)
			return c, err
		}
	}
	var first Changes
	if err := r.renewLease(ctx, s, "", &first); err != nil {
		return Changes{}, err
	}
	// s_list before the list of live servers: a server that reads the latter expects it in s_list.
	added, err := r.pipe.EvalInt(ctx, listAddScript, []string{r.keys.serverList()}, s.ID)
	if err != nil {
		return Changes{}, err
	}
	description, err := json.Marshal(aboutOf(s))
	if err != nil {
		return Changes{}, err
	}
	c, _, err := r.renewListed(ctx, s, 0, string(description))
	c.StatesChanged, c.Listed = first.StatesChanged, first.Listed+int(added)
	return c, err
}

// renewLease renews s_{id}, and sets what a beat reads besides the list. now is empty, or the
// store's time.
func (r *Redis) renewLease(ctx context.Context, s Server, now string, c *Changes) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		changed, err := r.pipe.EvalInt(ctx, beatScript, []string{r.keys.lease(s.ID), r.keys.tombstone(s.ID)},
			r.opts.Lease.Milliseconds(), s.Host, s.Version, s.StartedAt.UnixMilli(),
			s.Connections, s.Users, s.Channels, s.Watching, features, now)
		c.StatesChanged = changed
		if err == nil && changed < 0 {
			if _, err = r.pipe.EvalInt(ctx, endListedScript, r.listKeys(), s.ID); err == nil {
				err = ErrDead
			}
		}
		return err
	})
	group.Go(func() error {
		n, err := r.count(ctx, "scard", r.keys.serverList())
		c.Listed = int(n)
		return err
	})
	return group.Wait()
}

func (r *Redis) listKeys() []string {
	return []string{r.keys.listEnds(), r.keys.listChanges(), r.keys.listAbout()}
}

// renewListed renews the lease in the list of live servers. now is the store's time, Unix ms. It is
// empty if the list does not have the server, and there is no description.
func (r *Redis) renewListed(ctx context.Context, s Server, since int64, description string) (c Changes, now string, err error) {
	reply, err := r.pipe.EvalArray(ctx, renewListedScript, r.listKeys(),
		s.ID, r.opts.Lease.Microseconds(), strconv.FormatInt(since, 10), description, changesKeep.Microseconds())
	if err != nil {
		return c, "", err
	}
	listed := reply.Int()
	if listed == 0 && reply.Len() == 0 {
		return c, "", reply.Err
	}
	c.All, c.Number = listed == 2, reply.Int()
	at := reply.Int()
	for reply.Len() > 0 {
		id, text := reply.Text(), reply.Text()
		if text == "" {
			c.Ended = append(c.Ended, id)
			continue
		}
		var a about
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			return c, "", fmt.Errorf("description of server %s: %w", id, err)
		}
		c.Changed = append(c.Changed, a.server(id))
	}
	c.sort()
	return c, strconv.FormatInt(at, 10), reply.Err
}

// sort sorts the servers by id.
func (c *Changes) sort() {
	slices.Sort(c.Ended)
	slices.SortFunc(c.Changed, func(x, y Server) int { return strings.Compare(x.ID, y.ID) })
}
