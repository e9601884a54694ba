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

	"switchboard/internal/await"
	"switchboard/internal/freeport"
)

// slots is the number of hash slots of a Redis Cluster.
const slots = 16384

// startTimeout is how long started servers may take to connect to each other.
const startTimeout = 30 * time.Second

// Cluster is a running Redis Cluster.
type Cluster struct {
	Masters  []*Server
	Replicas []*Server // none, or one for each of Masters, in the same order
}

// StartCluster runs a Cluster of n masters until the test ends.
func StartCluster(tb testing.TB, n int) *Cluster {
	tb.Helper()
	c, err := LaunchCluster(tb.TempDir(), n)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Kill)
	return c
}

// LaunchCluster is StartCluster without a test: the caller kills the Cluster. extra is appended to
// the arguments of each server.
func LaunchCluster(dir string, n int, extra ...string) (*Cluster, error) {
	return launchCluster(dir, n, 0, extra...)
}

// StartReplicatedCluster runs a Cluster of n masters with one replica each until the test ends. A
// replica takes over within seconds. extra is appended to the arguments of each server.
func StartReplicatedCluster(tb testing.TB, n int, extra ...string) *Cluster {
	tb.Helper()
	c, err := LaunchReplicatedCluster(tb.TempDir(), n, extra...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Kill)
	return c
}

// LaunchReplicatedCluster is StartReplicatedCluster without a test: the caller kills the Cluster.
func LaunchReplicatedCluster(dir string, n int, extra ...string) (*Cluster, error) {
	return launchCluster(dir, n, n, append([]string{
		"--cluster-node-timeout", "1500", "--cluster-replica-validity-factor", "0",
		"--cluster-allow-replica-migration", "no", "--repl-diskless-sync-delay", "0",
	}, extra...)...)
}

func launchCluster(dir string, masters, replicas int, extra ...string) (*Cluster, error) {
	c := &Cluster{}
	for i := range masters + replicas {
		s, err := launchNode(filepath.Join(dir, fmt.Sprint(i)), extra)
		if err != nil {
			c.Kill()
			return nil, err
		}
		if i < masters {
			c.Masters = append(c.Masters, s)
		} else {
			c.Replicas = append(c.Replicas, s)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	err := c.join(ctx)
	if err == nil {
		err = c.replicate(ctx)
	}
	if err != nil {
		c.Kill()
		return nil, err
	}
	return c, nil
}

func launchNode(dir string, extra []string) (*Server, error) {
	busPort, err := freeport.Find() // the default, port + 10000, may be beyond 65535
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return Launch(dir, append([]string{
		"--cluster-enabled", "yes", "--cluster-port", fmt.Sprint(busPort), "--cluster-node-timeout", "2000",
	}, extra...)...)
}

// Nodes returns all servers of the Cluster.
func (c *Cluster) Nodes() []*Server { return slices.Concat(c.Masters, c.Replicas) }

// join assigns the slots to the masters, connects all nodes, and waits until the nodes agree.
func (c *Cluster) join(ctx context.Context) error {
	n := len(c.Masters)
	for i, s := range c.Nodes() {
		commands := [][]any{{"cluster", "set-config-epoch", i + 1}} // must come before CLUSTER MEET
		if i < n {
			commands = append(commands, []any{"cluster", "addslotsrange", i * slots / n, (i+1)*slots/n - 1})
		}
		commands = append(commands, c.meet())
		for _, args := range commands {
			if err := s.Do(ctx, args...).Err(); err != nil {
				return fmt.Errorf("%v on %s: %w", args, s.Addr, err)
			}
		}
	}
	for _, s := range c.Nodes() {
		if err := await.Until(ctx, "the cluster did not form", func() bool {
			return s.field(ctx, "cluster_state", "cluster", "info") == "ok" &&
				s.field(ctx, "cluster_size", "cluster", "info") == fmt.Sprint(n) &&
				s.field(ctx, "cluster_known_nodes", "cluster", "info") == fmt.Sprint(len(c.Nodes()))
		}); err != nil {
			return err
		}
	}
	return nil
}

// Of returns the master that had the slot of a key when the Cluster started, and its replica. The
// replica is nil in a Cluster without replicas.
func (c *Cluster) Of(ctx context.Context, key string) (master, replica *Server, err error) {
	slot, err := c.Nodes()[0].Do(ctx, "cluster", "keyslot", key).Int()
	if err != nil {
		return nil, nil, err
	}
	i := 0
	for slot >= (i+1)*slots/len(c.Masters) {
		i++
	}
	if len(c.Replicas) > 0 {
		replica = c.Replicas[i]
	}
	return c.Masters[i], replica, nil
}

// meet returns the command that connects a node to the first one.
func (c *Cluster) meet() []any {
	first := c.Masters[0]
	host, port, _ := strings.Cut(first.Addr, ":")
	return []any{"cluster", "meet", host, port, first.args[slices.Index(first.args, "--cluster-port")+1]}
}

// replicate assigns a replica to each master. It waits until the replicas are in sync and all nodes
// know them: from then on a replica takes over for a dead master.
func (c *Cluster) replicate(ctx context.Context) error {
	for i, s := range c.Replicas {
		id, err := c.Masters[i].Do(ctx, "cluster", "myid").Text()
		if err != nil {
			return err
		}
		if err := s.Do(ctx, "cluster", "replicate", id).Err(); err != nil {
			return fmt.Errorf("%s replicates %s: %w", s.Addr, c.Masters[i].Addr, err)
		}
	}
	for _, s := range c.Replicas {
		if err := await.Until(ctx, s.Addr+" is not in sync with its master", func() bool { return s.inSync(ctx) }); err != nil {
			return err
		}
	}
	for _, s := range c.Masters[:len(c.Replicas)] {
		if err := await.Until(ctx, "no replica confirms writes of "+s.Addr, func() bool { return s.replicates(ctx) }); err != nil {
			return err
		}
	}
	for _, s := range c.Nodes() {
		if err := await.Until(ctx, s.Addr+" does not know all replicas", func() bool {
			nodes, err := s.Do(ctx, "cluster", "nodes").Text()
			return err == nil && strings.Count(nodes, "slave ") == len(c.Replicas)
		}); err != nil {
			return err
		}
	}
	return nil
}

// Kill kills all servers.
func (c *Cluster) Kill() {
	for _, s := range c.Nodes() {
		s.Kill()
	}
}

// URL returns the address in the form of the configuration.
func (c *Cluster) URL() string {
	var hosts []string
	for _, s := range c.Nodes() {
		hosts = append(hosts, s.Addr)
	}
	return "redis-cluster://" + strings.Join(hosts, ",")
}

// Client returns a client of the Cluster, which is closed when the test ends.
func (c *Cluster) Client(tb testing.TB) *redis.ClusterClient {
	var addrs []string
	for _, s := range c.Nodes() {
		addrs = append(addrs, s.Addr)
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, MaxRetries: -1, ContextTimeoutEnabled: true})
	tb.Cleanup(func() { _ = client.Close() })
	return client
}
