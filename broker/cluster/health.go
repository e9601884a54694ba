package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"switchboard/broker/api"
	"switchboard/broker/health"
	"switchboard/registry"
)

// Health implements api.Cluster: it returns what needs attention, on any server and in the c.opts.
func (c *Cluster) Health(ctx context.Context) health.Report {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	f := health.Facts{
		Now: time.Now(), Lease: c.opts.Member.Lease(), Shared: c.opts.Links != nil,
		JanitorsUnknown: c.opts.Janitors != nil, // until they are read
	}
	var mu sync.Mutex // guards f
	var group errgroup.Group
	// read reads a part of the facts from the c.opts. The others are shown without it.
	read := func(what string, part func() (set func(), err error)) {
		group.Go(func() error {
			set, err := part()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				f.Unavailable = append(f.Unavailable, readError(what, err))
				return nil
			}
			set()
			return nil
		})
	}
	reg := c.opts.Registry
	read("the list of servers", func() (func(), error) {
		live, err1 := reg.Servers(ctx)
		listed, err2 := reg.Listed(ctx)
		died, err3 := reg.Died(ctx)
		return func() { f.Servers, f.Listed, f.Died = live, listed, died }, errors.Join(err1, err2, err3)
	})
	if c.opts.Janitors != nil {
		read("the list of janitors", func() (func(), error) {
			list, err := c.opts.Janitors(ctx)
			return func() { f.Janitors, f.JanitorsUnknown = list, false }, err
		})
	}
	if c.opts.Memory != nil {
		read("the memory of Redis", func() (func(), error) {
			list, err := c.opts.Memory(ctx)
			return func() { f.Redis = list }, err
		})
	}
	if c.opts.Webhooks != nil {
		read("the events that wait", func() (func(), error) {
			backlog, err := c.opts.Webhooks.Backlog(ctx)
			return func() { f.Webhooks = webhookFacts(backlog) }, err
		})
	}
	read("the numbers of the servers", func() (func(), error) {
		list, _ := c.Stats(ctx)
		return func() { f.Loads = loads(list) }, nil
	})
	_ = group.Wait() // the parts return no errors
	if len(f.Loads) > 0 {
		f.Silent = silent(f.Servers, f.Loads, c.others())
	}
	return health.Check(f)
}

// readError returns an error that does not have the address of Redis, which may be a secret. The
// log has it.
func readError(what string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s cannot be read: Redis does not answer in time", what)
	}
	return fmt.Errorf("%s cannot be read from Redis", what)
}

// silent returns the servers that have a lease and were asked, but did not answer.
func silent(servers []registry.Server, loads []health.Load, asked []registry.Server) (ids []string) {
	for _, s := range servers {
		answered := slices.ContainsFunc(loads, func(l health.Load) bool { return l.Server == s.ID })
		if !answered && slices.ContainsFunc(asked, func(a registry.Server) bool { return a.ID == s.ID }) {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

func loads(list []api.Stats) []health.Load {
	loads := make([]health.Load, len(list))
	for i, s := range list {
		loads[i] = health.Load{Server: s.Server, Connections: s.Connections, MaxConnections: s.MaxConnections}
		if s.CertificateEnds > 0 {
			loads[i].Certificate = time.UnixMilli(s.CertificateEnds)
		}
	}
	return loads
}

func webhookFacts(b api.Backlog) *health.Webhooks {
	w := &health.Webhooks{Waiting: b.Waiting, Dead: b.Dead, Attempts: b.Attempts}
	if len(b.Endpoints) > 0 {
		w.URL = b.Endpoints[0].URL
	}
	if b.Oldest > 0 {
		w.Oldest = time.UnixMilli(b.Oldest)
	}
	if b.RetryAt > 0 {
		w.RetryAt = time.UnixMilli(b.RetryAt)
	}
	if b.Last != nil {
		w.Status, w.Error = b.Last.Status, b.Last.Error
	}
	return w
}
