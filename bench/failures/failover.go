package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"switchboard/bench/system"
	"switchboard/internal/await"
	"switchboard/internal/redistest"
)

// The stores in which a master fails over.
const (
	storeCluster  = "cluster"
	storeOwn      = "cluster, the broker's own lists" // the master that has them; in the other cases of a Cluster it is another one
	storeTwice    = "cluster, two masters"            // the second while the broker still binds after the first
	storeSentinel = "sentinel"
)

// failoverWindow is from the kill of a master until the end of the count. The replica is a master
// after about two seconds.
const failoverWindow = 20 * time.Second

// failoverResult is the number of commands after a master is killed, without those of a quiet
// window of the same length.
type failoverResult struct {
	Store    string `json:"store"` // one of the constants
	Clients  int    `json:"clients"`
	Replaced int64  `json:"replaced"` // of the replicas that become masters
	Others   int64  `json:"others"`   // of the other masters of a Cluster
	Rebinds  int64  `json:"rebinds"`  // how often the broker compared bindings with the store
	Errors   int64  `json:"errors"`   // commands that failed on the other masters
}

// replicated is a Redis in which replicas take over.
type replicated struct {
	url            string
	cluster        *redistest.Cluster  // nil under Sentinel
	dead, replicas []*redistest.Server // in the same order
	others         []*redistest.Server
	kill           func()
}

// launchReplicated starts a Cluster of three masters, or a master under Sentinel.
func launchReplicated(ctx context.Context, store, dir string) (r replicated, err error) {
	if store == storeSentinel {
		s, err := redistest.LaunchSentinel(dir, "--maxmemory-policy", "noeviction")
		if err != nil {
			return r, err
		}
		r.url, r.kill = s.URL(), s.Kill
		dead, err := s.Master(ctx)
		if err != nil {
			return r, err
		}
		replica, err := s.Replica(ctx)
		r.dead, r.replicas = []*redistest.Server{dead}, []*redistest.Server{replica}
		return r, err
	}
	c, err := redistest.LaunchReplicatedCluster(dir, 3, "--maxmemory-policy", "noeviction", "--cluster-require-full-coverage", "no")
	if err != nil {
		return r, err
	}
	r.url, r.kill, r.cluster = c.URL(), c.Kill, c
	return r, nil
}

// choose chooses the masters of a Cluster that fail: one that has the lists of the channels and
// clients of the only broker, or others.
func (r *replicated) choose(ctx context.Context, store string) error {
	c := r.cluster
	if c == nil {
		return nil
	}
	own := -1
	for i, m := range c.Masters {
		keys, err := m.Do(ctx, "keys", "*s_ch_{*").StringSlice()
		if err != nil {
			return err
		}
		if len(keys) > 0 {
			own = i
		}
	}
	if own < 0 {
		return errors.New("no master has the list of the broker's channels")
	}
	begin, n := own+1, 1
	switch store {
	case storeOwn:
		begin = own
	case storeTwice:
		n = 2
	}
	for i := range c.Masters {
		k := (begin + i) % len(c.Masters)
		if i < n {
			r.dead, r.replicas = append(r.dead, c.Masters[k]), append(r.replicas, c.Replicas[k])
		} else {
			r.others = append(r.others, c.Masters[k])
		}
	}
	return nil
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
	holder, err := startBroker(ctx, &system.Switchboard{Program: program}, dir, redis.url, n)
	if err != nil {
		return r, err
	}
	defer kill(holder)
	clients, err := connectClients(ctx, holder.Addr(), n, false, discard)
	if err != nil {
		return r, err
	}
	defer clients.close()
	if err := redis.choose(ctx, store); err != nil {
		return r, err
	}
	if err := await.Pause(ctx, o.scaled(settleTime)); err != nil {
		return r, err
	}
	quietReplaced, quietOthers, err := o.countNodes(ctx, redis, func() error { return nil })
	if err != nil {
		return r, err
	}
	before, err := readings(ctx, holder)
	if err != nil {
		return r, err
	}
	failedBefore, err := failuresOf(ctx, redis.others)
	if err != nil {
		return r, err
	}
	r.Store, r.Clients = store, n
	if r.Replaced, r.Others, err = o.countNodes(ctx, redis, func() error { return redis.fail(ctx, holder, before) }); err != nil {
		return r, err
	}
	r.Replaced, r.Others = r.Replaced-quietReplaced, r.Others-quietOthers
	failed, err := failuresOf(ctx, redis.others)
	if err != nil {
		return r, err
	}
	r.Errors = failed - failedBefore
	after, err := readings(ctx, holder)
	r.Rebinds = after - before
	return r, errors.Join(err, clients.check())
}

// fail kills the first master. It kills the second one as soon as the broker binds again because
// of the first, and has its replica take over at once.
func (r replicated) fail(ctx context.Context, broker system.Running, before int64) error {
	r.dead[0].Kill()
	if len(r.dead) == 1 {
		return nil
	}
	for {
		rebinds, err := readings(ctx, broker)
		if err != nil {
			return err
		}
		if rebinds > before {
			break
		}
		if err := await.Pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	r.dead[1].Kill()
	return r.replicas[1].Do(ctx, "cluster", "failover", "takeover").Err()
}

// countNodes calls do, and returns the number of commands of the replicas and of the other masters
// until a window after its begin has passed.
func (o options) countNodes(ctx context.Context, r replicated, do func() error) (replaced, others int64, err error) {
	nodes := slices.Concat(r.others, r.replicas)
	before, err := commandsOf(ctx, nodes)
	if err != nil {
		return 0, 0, err
	}
	end := time.Now().Add(o.scaled(failoverWindow))
	if err := do(); err != nil {
		return 0, 0, err
	}
	if err := await.Pause(ctx, time.Until(end)); err != nil {
		return 0, 0, err
	}
	after, err := commandsOf(ctx, nodes)
	if err != nil {
		return 0, 0, err
	}
	for i := range nodes {
		if n := after[i] - before[i]; i < len(r.others) {
			others += n
		} else {
			replaced += n
		}
	}
	return replaced, others, nil
}

// failuresOf returns the number of commands that have failed on the servers.
func failuresOf(ctx context.Context, servers []*redistest.Server) (sum int64, err error) {
	each, err := statsOf(ctx, servers, (*redisStats).failures)
	for _, n := range each {
		sum += n
	}
	return sum, err
}

// commandsOf returns the number of commands of each server since its start.
func commandsOf(ctx context.Context, servers []*redistest.Server) ([]int64, error) {
	return statsOf(ctx, servers, (*redisStats).commands)
}

// statsOf reads a number of each server.
func statsOf(ctx context.Context, servers []*redistest.Server, read func(*redisStats, context.Context) (int64, error)) ([]int64, error) {
	all := make([]int64, len(servers))
	for i, s := range servers {
		stats, err := connectRedis(s.Addr)
		if err != nil {
			return nil, err
		}
		all[i], err = read(stats, ctx)
		stats.close()
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
