package janitor

import (
	"context"
	"slices"
	"sync"
	"time"
)

// ServersRound looks at every listed server once and cleans up after the dead ones.
// The error joins what went wrong with single servers, channels and clients; the
// rest was done all the same. The Report is right in both cases.
func (j *Janitor) ServersRound(ctx context.Context) (Report, error) {
	j.turn.Lock()
	defer j.turn.Unlock()
	return j.measured(servers, func(did *tally) error {
		listed, err := j.opts.Registry.Listed(ctx)
		if err != nil {
			return err
		}
		j.forgetUnlisted(listed)
		var errs problems
		// All are judged before any is cleaned: cleaning may take long.
		for _, server := range j.dead(ctx, listed, did, &errs) {
			if err := j.clean(ctx, server, did); err != nil {
				errs.add(err)
			}
		}
		return errs.join(ctx)
	})
}

func (j *Janitor) forgetUnlisted(listed []string) {
	gone := func(server string) bool { return !slices.Contains(listed, server) }
	for server := range j.hosts {
		if gone(server) {
			delete(j.hosts, server)
		}
	}
	for server := range j.suspects {
		if gone(server) {
			delete(j.suspects, server)
		}
	}
}

// verdict is what the stores say of one server.
type verdict struct {
	live, buried bool
	host         string
}

// dead are those of listed that are declared dead, by this round or an earlier one.
func (j *Janitor) dead(ctx context.Context, listed []string, did *tally, errs *problems) []string {
	var mu sync.Mutex
	verdicts := map[string]verdict{}
	j.each(ctx, listed, func(server string) {
		v, err := j.look(ctx, server)
		if err != nil {
			errs.add(err) // neither cleared nor suspected by this
			return
		}
		mu.Lock()
		defer mu.Unlock()
		verdicts[server] = v
	})

	var condemned, dead []string
	for _, server := range listed {
		v, seen := verdicts[server]
		switch {
		case !seen:
		case v.live:
			j.hosts[server] = v.host
			delete(j.suspects, server)
		case v.buried:
			dead = append(dead, server)
		case j.suspects[server].IsZero():
			j.suspects[server] = time.Now()
			did.suspected.Add(1)
		default:
			condemned = append(condemned, server)
		}
	}
	return append(dead, j.bury(ctx, condemned, did, errs)...)
}

func (j *Janitor) look(ctx context.Context, server string) (verdict, error) {
	s, live, err := j.opts.Registry.Lease(ctx, server)
	if err != nil || live {
		return verdict{live: live, host: s.Host}, err
	}
	buried, err := j.opts.Registry.DeclaredDead(ctx, server)
	return verdict{buried: buried}, err
}

// bury declares those of condemned dead that do not answer, or have been answering
// for too long without a lease. The store spares whoever has a lease again.
func (j *Janitor) bury(ctx context.Context, condemned []string, did *tally, errs *problems) []string {
	var mu sync.Mutex
	var dead []string
	j.each(ctx, condemned, func(server string) {
		host := j.hosts[server] // only read here: nobody writes during the round
		patient := time.Since(j.suspects[server]) < j.opts.Patience
		if host != "" && patient && j.opts.Probe(ctx, host, server) {
			return
		}
		buried := true
		if !j.opts.DryRun {
			var err error
			if buried, err = j.opts.Registry.DeclareDead(ctx, server); err != nil {
				errs.add(err)
				return
			}
		}
		if buried {
			did.buried.Add(1)
			mu.Lock()
			defer mu.Unlock()
			dead = append(dead, server)
		}
	})
	return dead
}
