package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/internal/await"
	"switchboard/internal/freeport"
)

const (
	// masterName is the name of the master in the Sentinels.
	masterName = "mine"
	sentinels  = 3
	quorum     = 2
)

// Sentinel is a master and its replica, monitored by three Sentinels. They promote the replica
// about two seconds after the death of the master.
type Sentinel struct {
	Sentinels []*Server
	nodes     []*Server // master and replica
}

// StartSentinel runs all five servers until the test ends. extra is appended to the arguments of
// master and replica.
func StartSentinel(tb testing.TB, extra ...string) *Sentinel {
	tb.Helper()
	s, err := LaunchSentinel(tb.TempDir(), extra...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Kill)
	return s
}

// LaunchSentinel is StartSentinel without a test: the caller kills the servers.
func LaunchSentinel(dir string, extra ...string) (*Sentinel, error) {
	return LaunchSentinelReplicaEnv(dir, nil, extra...)
}

// LaunchSentinelReplicaEnv is LaunchSentinel with env added to the environment of the replica.
func LaunchSentinelReplicaEnv(dir string, env []string, extra ...string) (*Sentinel, error) {
	s := &Sentinel{}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := s.launch(ctx, dir, env, extra); err != nil {
		s.Kill()
		return nil, err
	}
	return s, nil
}

func (s *Sentinel) launch(ctx context.Context, dir string, env, extra []string) error {
	extra = append([]string{"--repl-diskless-sync-delay", "0"}, extra...)
	var nodeEnv []string
	for i := range 2 {
		if i == 1 { // the replica
			nodeEnv, extra = env, append(extra, "--replicaof", hostPort(s.nodes[0].Addr))
		}
		home := filepath.Join(dir, fmt.Sprint("data-", i))
		if err := os.MkdirAll(home, 0o755); err != nil {
			return err
		}
		node, err := launch(home, nodeEnv, extra)
		if err != nil {
			return err
		}
		s.nodes = append(s.nodes, node)
	}
	if err := await.Until(ctx, "the replica is not in sync", func() bool { return s.nodes[1].inSync(ctx) }); err != nil {
		return err
	}
	for i := range sentinels {
		node, err := s.launchSentinel(filepath.Join(dir, fmt.Sprint("sentinel-", i)))
		if err != nil {
			return err
		}
		s.Sentinels = append(s.Sentinels, node)
	}
	return await.Until(ctx, "the Sentinels did not connect to each other", func() bool { return s.agree(ctx) })
}

// launchSentinel starts one Sentinel in its own directory, since it rewrites its configuration.
func (s *Sentinel) launchSentinel(dir string) (*Server, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	port, err := freeport.Find()
	if err != nil {
		return nil, err
	}
	conf := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf(`port %d
bind 127.0.0.1
dir %s
sentinel monitor %s %s %d
sentinel down-after-milliseconds %[3]s 1000
sentinel failover-timeout %[3]s 3000
sentinel parallel-syncs %[3]s 1
`, port, dir, masterName, hostPort(s.nodes[0].Addr), quorum)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return nil, err
	}
	node := &Server{
		Addr: fmt.Sprintf("127.0.0.1:%d", port), args: []string{conf, "--sentinel"}, dir: dir,
		ready: "+monitor master " + masterName,
	}
	return node, node.Restart()
}

// agree reports whether each Sentinel knows the replica and the other Sentinels.
func (s *Sentinel) agree(ctx context.Context) bool {
	want := fmt.Sprintf("name=%s,status=ok,address=%s,slaves=1,sentinels=%d", masterName, s.nodes[0].Addr, sentinels)
	for _, node := range s.Sentinels {
		if node.field(ctx, "master0", "info", "sentinel") != want {
			return false
		}
	}
	return true
}

// Master returns the server that a quorum of the Sentinels considers the master, dead or alive.
func (s *Sentinel) Master(ctx context.Context) (*Server, error) {
	votes := s.votes(ctx)
	for _, node := range s.nodes {
		if votes[node.Addr] >= quorum {
			return node, nil
		}
	}
	return nil, fmt.Errorf("the Sentinels do not agree on the master: %v", votes)
}

// votes returns the number of Sentinels by the master address that they report.
func (s *Sentinel) votes(ctx context.Context) map[string]int {
	votes := map[string]int{}
	for _, node := range s.Sentinels {
		addr, err := node.Do(ctx, "sentinel", "get-master-addr-by-name", masterName).StringSlice()
		if err == nil {
			votes[strings.Join(addr, ":")]++
		}
	}
	return votes
}

// Replica returns the server that is not the master.
func (s *Sentinel) Replica(ctx context.Context) (*Server, error) {
	master, err := s.Master(ctx)
	if err != nil {
		return nil, err
	}
	return s.other(master), nil
}

func (s *Sentinel) other(node *Server) *Server {
	if s.nodes[0] == node {
		return s.nodes[1]
	}
	return s.nodes[0]
}

// Rejoin restarts a killed server as the replica of the other one, and waits until it is in sync.
// It first waits until all Sentinels report the other one as master, since a client may learn of
// the failover from the first of them. Without --replicaof, a restarted master would act as a
// master until the Sentinels reconfigure it.
func (s *Sentinel) Rejoin(ctx context.Context, dead *Server) error {
	master := s.other(dead)
	if err := await.Until(ctx, "the Sentinels did not all promote "+master.Addr, func() bool {
		return s.votes(ctx)[master.Addr] == sentinels
	}); err != nil {
		return err
	}
	if len(dead.args) > 1 && dead.args[len(dead.args)-2] == "--replicaof" {
		dead.args = dead.args[:len(dead.args)-2]
	}
	dead.args = append(dead.args, "--replicaof", hostPort(master.Addr))
	if err := dead.Restart(); err != nil {
		return err
	}
	return await.Until(ctx, "the replica is not in sync", func() bool { return dead.inSync(ctx) })
}

// Kill kills all servers.
func (s *Sentinel) Kill() {
	for _, node := range append(s.Sentinels, s.nodes...) {
		node.Kill()
	}
}

// URL returns the address in the form of the configuration.
func (s *Sentinel) URL() string {
	var hosts []string
	for _, node := range s.Sentinels {
		hosts = append(hosts, node.Addr)
	}
	return "redis-sentinel://" + strings.Join(hosts, ",") + "/" + masterName
}

// hostPort returns an address in the form of Redis's own configuration, `host port`.
func hostPort(addr string) string { return strings.ReplaceAll(addr, ":", " ") }
