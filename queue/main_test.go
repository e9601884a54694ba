package queue

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"switchboard/internal/redistest"
)

// The servers of all tests, started once; every test has a prefix of its own.
var (
	server  *redistest.Server
	cluster *redistest.Cluster
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	code := withServers(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func withServers(m *testing.M) int {
	dir, err := os.MkdirTemp("", "queue-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if server, err = redistest.Launch(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer server.Kill()
	if cluster, err = redistest.LaunchCluster(dir, 3); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer cluster.Kill()
	return m.Run()
}
