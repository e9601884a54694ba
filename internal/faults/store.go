package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/await"
	"switchboard/internal/redistest"
	"switchboard/internal/redisurl"
)

// topology is the kind of Redis deployment.
type topology string

const (
	single      topology = "single"
	aof         topology = "single, AOF"
	sentinel    topology = "Sentinel"
	slowReplica topology = "Sentinel, slow clock"
	cluster     topology = "Cluster 3+3"
)

// store is the Redis of a scenario. One of server, sentinel and cluster is not nil.
type store struct {
	server   *redistest.Server
	sentinel *redistest.Sentinel
	cluster  *redistest.Cluster

	url    string
	client redis.UniversalClient // to inspect the data, and to fill Redis
}

func launchStore(t topology, dir string) (*store, error) {
	s := &store{}
	var err error
	switch dir = filepath.Join(dir, "redis"); t {
	case sentinel, slowReplica:
		var env []string
		if t == slowReplica {
			if env, err = slowClockEnv(dir); err != nil {
				break
			}
		}
		if s.sentinel, err = redistest.LaunchSentinelReplicaEnv(dir, env); err == nil {
			s.url = s.sentinel.URL()
		}
	case cluster:
		if s.cluster, err = redistest.LaunchReplicatedCluster(dir, 3); err == nil {
			s.url = s.cluster.URL()
		}
	default:
		var extra []string
		if t == aof {
			extra = []string{"--appendonly", "yes", "--appendfsync", "everysec"}
		}
		if s.server, err = launchSingle(dir, extra); err == nil {
			s.url = s.server.URL()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	if s.client, _, err = redisurl.Open(s.url); err != nil {
		s.kill()
		return nil, err
	}
	return s, nil
}

func launchSingle(dir string, extra []string) (*redistest.Server, error) {
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	return redistest.Launch(dir, extra...)
}

func (s *store) kill() {
	if s.client != nil {
		_ = s.client.Close()
	}
	if s.server != nil {
		s.server.Kill()
	}
	if s.sentinel != nil {
		s.sentinel.Kill()
	}
	if s.cluster != nil {
		s.cluster.Kill()
	}
}

// failoverPair is a master and the replica that takes over from it.
type failoverPair struct{ master, replica *redistest.Server }

// failoverPair returns a pair. In a Cluster, index selects one of the pairs.
func (s *store) failoverPair(ctx context.Context, index int) (p failoverPair, err error) {
	switch {
	case s.sentinel != nil:
		if p.master, err = s.sentinel.Master(ctx); err == nil {
			p.replica, err = s.sentinel.Replica(ctx)
		}
		return p, err
	case s.cluster != nil:
		return failoverPair{s.cluster.Masters[index], s.cluster.Replicas[index]}, nil
	}
	return p, errors.New("this topology has no replica")
}

// awaitFailover waits until the replica is master, and restarts the old master as its replica. It
// lets the new master replicate again: if the machine stalls for a second, the Sentinels fail over
// once more.
func (s *store) awaitFailover(ctx context.Context, p failoverPair) error {
	if err := await.Success(ctx, func() error { return isMaster(ctx, p.replica) }); err != nil {
		return err
	}
	if err := p.replica.Attach(ctx); err != nil {
		return err
	}
	if s.sentinel == nil {
		return p.master.Restart()
	}
	return s.sentinel.Rejoin(ctx, p.master)
}

func isMaster(ctx context.Context, s *redistest.Server) error {
	answer, err := s.Do(ctx, "role").Slice()
	if err == nil && (len(answer) == 0 || answer[0] != "master") {
		err = fmt.Errorf("%s is not a master yet", s.Addr)
	}
	return err
}
