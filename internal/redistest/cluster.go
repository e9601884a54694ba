package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// slots is the number of hash slots of a Redis Cluster.
const slots = 16384

// Cluster is a running Redis Cluster of masters without replicas.
type Cluster struct {
	Masters []*Server
}

// StartCluster runs a Cluster of n masters for the length of the test.
func StartCluster(tb testing.TB, n int) *Cluster {
	tb.Helper()
	c, err := LaunchCluster(tb.TempDir(), n)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Kill)
	return c
}

// LaunchCluster is StartCluster without a test: the caller kills the Cluster.
func LaunchCluster(dir string, n int) (*Cluster, error) {
	c := &Cluster{}
	for i := range n {
		busPort, err := freePort() // the default, port + 10000, may be beyond 65535
		if err != nil {
			return nil, err
		}
		home := filepath.Join(dir, fmt.Sprint(i))
		if err := os.MkdirAll(home, 0o755); err != nil {
			return nil, err
		}
		s, err := Launch(home, "--cluster-enabled", "yes", "--cluster-port", fmt.Sprint(busPort),
			"--cluster-node-timeout", "2000")
		if err != nil {
			c.Kill()
			return nil, err
		}
		c.Masters = append(c.Masters, s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := c.join(ctx); err != nil {
		c.Kill()
		return nil, err
	}
	return c, nil
}

// join gives each master its slots, introduces them, and waits until all agree.
func (c *Cluster) join(ctx context.Context) error {
	n := len(c.Masters)
	for i, s := range c.Masters {
		node := redis.NewClient(&redis.Options{Addr: s.Addr})
		defer node.Close()
		first := strings.Split(c.Masters[0].Addr, ":")
		bus := c.Masters[0].args[slices.Index(c.Masters[0].args, "--cluster-port")+1]
		for _, args := range [][]any{
			{"cluster", "set-config-epoch", i + 1},
			{"cluster", "addslotsrange", i * slots / n, (i+1)*slots/n - 1},
			{"cluster", "meet", first[0], first[1], bus},
		} {
			if err := node.Do(ctx, args...).Err(); err != nil {
				return fmt.Errorf("%v on %s: %w", args, s.Addr, err)
			}
		}
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, s := range c.Masters {
		node := redis.NewClient(&redis.Options{Addr: s.Addr})
		defer node.Close()
		for {
			info, err := node.ClusterInfo(ctx).Result()
			if err != nil {
				return err
			}
			if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_size:%d", n)) {
				break
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return fmt.Errorf("the cluster did not form:\n%s", info)
			}
		}
	}
	return nil
}

// Kill ends all masters.
func (c *Cluster) Kill() {
	for _, s := range c.Masters {
		s.Kill()
	}
}

// URL is the address as configuration takes it.
func (c *Cluster) URL() string {
	var hosts []string
	for _, s := range c.Masters {
		hosts = append(hosts, s.Addr)
	}
	return "redis-cluster://" + strings.Join(hosts, ",")
}

// Client is a connection to the Cluster for the length of the test.
func (c *Cluster) Client(tb testing.TB) *redis.ClusterClient {
	var addrs []string
	for _, s := range c.Masters {
		addrs = append(addrs, s.Addr)
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, MaxRetries: -1, ContextTimeoutEnabled: true})
	tb.Cleanup(func() { _ = client.Close() })
	return client
}
