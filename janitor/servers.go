package janitor

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// ServersRound checks each listed server once and cleans up after the dead ones. An error of a
// server, channel or client does not stop the round; ServersRound joins these errors. The Report is
// complete in every case.
func (j *Janitor) ServersRound(ctx context.Context) (Report, error) {
	j.serversMu.Lock()
	defer j.serversMu.Unlock()
	return j.measured(servers, func(counts *counters) error {
		listed, err := j.opts.Registry.Listed(ctx)
		if err != nil {
			return err
		}
		j.forgetUnlisted(listed)
		var errs errorList
		// Check all servers before the cleanup, which may take long.
		for _, server := range j.findDead(ctx, listed, counts, &errs) {
			if err := j.clean(ctx, server, counts); err != nil {
				errs.add(err)
			}
		}
		return errs.join(ctx)
	})
}

// forgetUnlisted removes the state of servers that are no longer listed.
func (j *Janitor) forgetUnlisted(listed []string) {
	maps.DeleteFunc(j.hosts, func(server string, _ string) bool { return !slices.Contains(listed, server) })
	maps.DeleteFunc(j.suspects, func(server string, _ time.Time) bool { return !slices.Contains(listed, server) })
}

// serverState is the state of a server in the registry.
type serverState struct {
	live, dead bool   // dead means declared dead
	host       string // if live
}

// findDead returns the listed servers that are declared dead, in this round or earlier.
func (j *Janitor) findDead(ctx context.Context, listed []string, counts *counters, errs *errorList) []string {
	var mu sync.Mutex
	states := map[string]serverState{}
	j.each(ctx, listed, func(server string) {
		s, err := j.readState(ctx, server)
		if err != nil {
			errs.add(err) // the server is neither suspected nor cleared
			return
		}
		mu.Lock()
		defer mu.Unlock()
		states[server] = s
	})

	var candidates, dead []string
	for _, server := range listed {
		s, known := states[server]
		switch {
		case !known: // readState failed
		case s.live:
			j.hosts[server] = s.host
			delete(j.suspects, server)
		case s.dead:
			dead = append(dead, server)
		case j.suspects[server].IsZero():
			j.suspects[server] = time.Now()
			counts.add(Report{Suspected: 1})
		default:
			candidates = append(candidates, server)
		}
	}
	return append(dead, j.declareDead(ctx, candidates, counts, errs)...)
}

func (j *Janitor) readState(ctx context.Context, server string) (serverState, error) {
	s, live, err := j.opts.Registry.Lease(ctx, server)
	if err != nil || live {
		return serverState{live: live, host: s.Host}, err
	}
	dead, err := j.opts.Registry.DeclaredDead(ctx, server)
	return serverState{dead: dead}, err
}

// declareDead declares candidates dead and returns the dead ones. It skips a candidate that answers
// and has been without a lease for less than Patience. If a server has a lease again, the registry
// does not declare it dead.
func (j *Janitor) declareDead(ctx context.Context, candidates []string, counts *counters, errs *errorList) []string {
	var mu sync.Mutex
	var declared []string
	j.each(ctx, candidates, func(server string) {
		host := j.hosts[server] // not written during j.each
		withinPatience := time.Since(j.suspects[server]) < j.opts.Patience
		if host != "" && withinPatience && j.opts.Probe(ctx, host, server) {
			return
		}
		dead := true
		if !j.opts.DryRun {
			var err error
			if dead, err = j.opts.Registry.DeclareDead(ctx, server); err != nil {
				errs.add(err)
				return
			}
		}
		if dead {
			counts.add(Report{DeclaredDead: 1})
			mu.Lock()
			defer mu.Unlock()
			declared = append(declared, server)
		}
	})
	return declared
}
