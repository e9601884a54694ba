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
	unequal  topology = "Sentinel, slow clock"
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
	case sentinel, unequal:
		var env []string
		if t == unequal {
			if env, err = slowClock(dir); err != nil {
				break
			}
		}
		if s.sentinel, err = redistest.LaunchUnequal(dir, env); err == nil {
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

// pair is a master and the replica that takes over from it.
type pair struct{ master, heir *redistest.Server }

// pair gives one; which chooses among those of a Cluster.
func (s *store) pair(ctx context.Context, which int) (p pair, err error) {
	switch {
	case s.sentinel != nil:
		if p.master, err = s.sentinel.Master(ctx); err == nil {
			p.heir, err = s.sentinel.Replica(ctx)
		}
		return p, err
	case s.cluster != nil:
		return pair{s.cluster.Masters[which], s.cluster.Replicas[which]}, nil
	}
	return p, errors.New("there is nobody to take over")
}

// detach has the replica fall behind: it loses its master, and has a password that the master
// does not take. A replica that is merely stopped would not do: on its return it would find in its socket
// all that the master had sent.
func (p pair) detach(ctx context.Context) error {
	if err := p.heir.Do(ctx, "config", "set", "masterauth", "wrong").Err(); err != nil {
		return err
	}
	return p.heir.Do(ctx, "client", "kill", "type", "master").Err()
}

// succeed waits until the heir is master, and starts the dead one again as its replica. The heir
// gives up the password of detach: should it become a replica again, as when the machine
// stalls for the second after which Sentinels replace a master, it must find its master.
func (s *store) succeed(ctx context.Context, p pair) error {
	if err := retry(ctx, func() error { return isMaster(ctx, p.heir) }); err != nil {
		return err
	}
	if err := p.heir.Do(ctx, "config", "set", "masterauth", "").Err(); err != nil {
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
