package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"switchboard/bench/system"
	"switchboard/internal/redistest"
)

// The stores in which a master fails over.
const (
	storeCluster  = "cluster"
	storeSentinel = "sentinel"
)

// failoverWindow is from the kill of a master until the end of the count. The replica is a master
// after about two seconds.
const failoverWindow = 20 * time.Second

// failoverResult is the number of commands after a master is killed, without those of a quiet
// window of the same length.
type failoverResult struct {
	Store    string `json:"store"` // cluster or sentinel
	Clients  int    `json:"clients"`
	Replaced int64  `json:"replaced"` // of the replica that becomes a master
	Others   int64  `json:"others"`   // of both other masters of a Cluster
	Rebinds  int64  `json:"rebinds"`  // how often the broker compared bindings with the store
}

// replicated is a Redis in which a replica takes over.
type replicated struct {
	url           string
	dead, replica *redistest.Server
	others        []*redistest.Server
	kill          func()
}

// launchReplicated starts a Cluster of three masters, or a master under Sentinel.
func launchReplicated(ctx context.Context, store, dir string) (r replicated, err error) {
	if store == storeSentinel {
		s, err := redistest.LaunchSentinel(dir, "--maxmemory-policy", "noeviction")
		if err != nil {
			return r, err
		}
		r.url, r.kill = s.URL(), s.Kill
		if r.dead, err = s.Master(ctx); err == nil {
			r.replica, err = s.Replica(ctx)
		}
		return r, err
	}
	c, err := redistest.LaunchReplicatedCluster(dir, 3, "--maxmemory-policy", "noeviction")
	if err != nil {
		return r, err
	}
	r.url, r.kill = c.URL(), c.Kill
	r.dead, r.replica, err = c.Of(ctx, "{0}")
	r.others = slices.DeleteFunc(slices.Clone(c.Masters), func(s *redistest.Server) bool { return s == r.dead })
	return r, err
}

// failover counts the commands after the failover of a master, with n clients of one broker, each
// with a channel.
func (o options) failover(ctx context.Context, program, dir, store string, n int) (r failoverResult, err error) {
	redis, err := launchReplicated(ctx, store, filepath.Join(dir, fmt.Sprint(store, "-", n)))
	if redis.kill != nil {
		defer redis.kill()
	}
	if err != nil {
		return r, err
	}
	broker := &system.Switchboard{Program: program, Env: append(slices.Clone(quietClients), "SWITCHBOARD_REDIS="+redis.url)}
	holder, err := broker.Start(ctx, system.Setup{Dir: dir, History: true, Clients: n, Transport: "tcp"})
	if err != nil {
		return r, err
	}
	defer kill(holder)
	clients, err := connectClients(ctx, holder.Addr(), n, false)
	if err != nil {
		return r, err
	}
	defer clients.close()
	if err := sleep(ctx, o.scaled(settleTime)); err != nil {
		return r, err
	}
	quietReplaced, quietOthers, err := o.countNodes(ctx, redis, func() {})
	if err != nil {
		return r, err
	}
	url := holder.(system.Monitored).MetricsURL()
	before, err := readings(ctx, url)
	if err != nil {
		return r, err
	}
	r.Store, r.Clients = store, n
	if r.Replaced, r.Others, err = o.countNodes(ctx, redis, redis.dead.Kill); err != nil {
		return r, err
	}
	r.Replaced, r.Others = r.Replaced-quietReplaced, r.Others-quietOthers
	after, err := readings(ctx, url)
	r.Rebinds = after - before
	return r, errors.Join(err, clients.check())
}

// countNodes calls do, and returns the number of commands of the replica and of the other masters
// in the window after that.
func (o options) countNodes(ctx context.Context, r replicated, do func()) (replaced, others int64, err error) {
	nodes := append(slices.Clone(r.others), r.replica)
	before, err := commandsOf(ctx, nodes)
	if err != nil {
		return 0, 0, err
	}
	do()
	if err := sleep(ctx, o.scaled(failoverWindow)); err != nil {
		return 0, 0, err
	}
	after, err := commandsOf(ctx, nodes)
	if err != nil {
		return 0, 0, err
	}
	last := len(nodes) - 1
	for i := range last {
		others += after[i] - before[i]
	}
	return after[last] - before[last], others, nil
}

// commandsOf returns the number of commands of each server since its start.
func commandsOf(ctx context.Context, servers []*redistest.Server) ([]int64, error) {
	sums := make([]int64, len(servers))
	for i, s := range servers {
		stats, err := connectRedis(s.Addr)
		if err != nil {
			return nil, err
		}
		sums[i], err = stats.commands(ctx)
		stats.close()
		if err != nil {
			return nil, err
		}
	}
	return sums, nil
}
