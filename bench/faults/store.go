package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redistest"
	"switchboard/internal/redisurl"
)

// topology is the shape of the Redis.
type topology string

const (
	single   topology = "single"
	aof      topology = "single, AOF"
	sentinel topology = "Sentinel"
	cluster  topology = "Cluster 3+3"
)

// store is the Redis of a scenario; one of the first three is not nil.
type store struct {
	server   *redistest.Server
	sentinel *redistest.Sentinel
	cluster  *redistest.Cluster

	url    string
	client redis.UniversalClient // ours, to look into it
}

func launchStore(t topology, dir string) (*store, error) {
	s := &store{}
	var err error
	switch dir = filepath.Join(dir, "redis"); t {
	case sentinel:
		if s.sentinel, err = redistest.LaunchSentinel(dir); err == nil {
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

// killMaster kills a master without a word. heal waits until another has taken over, and
// brings the dead one back as its replica.
func (s *store) killMaster(ctx context.Context, which int) (heal func(context.Context) error, err error) {
	switch {
	case s.sentinel != nil:
		dead, err := s.sentinel.Master(ctx)
		if err != nil {
			return nil, err
		}
		dead.Kill()
		return func(ctx context.Context) error {
			return retry(ctx, func() error { return s.sentinel.Rejoin(ctx, dead) })
		}, nil
	case s.cluster != nil:
		dead, heir := s.cluster.Masters[which], s.cluster.Replicas[which]
		dead.Kill()
		return func(ctx context.Context) error {
			if err := retry(ctx, func() error { return isMaster(ctx, heir) }); err != nil {
				return err
			}
			return dead.Restart()
		}, nil
	}
	return nil, errors.New("there is nobody to take over")
}

func isMaster(ctx context.Context, s *redistest.Server) error {
	node := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1})
	defer node.Close()
	answer, err := node.Do(ctx, "role").Slice()
	if err == nil && (len(answer) == 0 || answer[0] != "master") {
		err = fmt.Errorf("%s is no master yet", s.Addr)
	}
	return err
}

// retry does something until it succeeds.
func retry(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil || !pause(ctx, 50*time.Millisecond) {
			return err
		}
	}
}
