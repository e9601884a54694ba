//go:build long

package attack

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"switchboard/internal/proc"
	"switchboard/internal/redistest"
)

var (
	redisServer *redistest.Server
	// brokerPath is the broker, built without the race detector because that needs much more memory.
	brokerPath string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	if err := flag.Set("test.parallel", "3"); err != nil { // the tests wait most of the time
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "switchboard-attack-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	brokerPath = filepath.Join(dir, "broker")
	if err := proc.GoBuild(context.Background(), "-o", brokerPath, "switchboard/cmd/broker"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return redistest.Main(m, &redisServer, nil)
}
