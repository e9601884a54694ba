package redistest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"
)

// Main is the body of a TestMain. It starts a server for all tests of a package, and a Cluster of
// three masters if cluster is not nil. Then it runs the tests. It returns the exit code, which is
// not 0 if the tests fail or leak a goroutine. Each test needs its own key prefix.
func Main(m *testing.M, server **Server, cluster **Cluster, leaks ...goleak.Option) int {
	if slices.Contains(os.Args, "-test.fuzzworker") {
		return m.Run() // a fuzz worker is a process of its own, and needs no server
	}
	code, err := run(m, server, cluster)
	if code == 0 && err == nil {
		err = goleak.Find(leaks...)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func run(m *testing.M, server **Server, cluster **Cluster) (code int, err error) {
	dir, err := os.MkdirTemp("", "redistest-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if *server, err = Launch(dir); err != nil {
		return 0, err
	}
	defer (*server).Kill()
	if cluster != nil {
		if *cluster, err = LaunchCluster(filepath.Join(dir, "cluster"), 3); err != nil {
			return 0, err
		}
		defer (*cluster).Kill()
	}
	return m.Run(), nil
}
