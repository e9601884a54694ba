//go:build long

package attack

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"switchboard/internal/redistest"
	"switchboard/internal/testbed"
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
	var dir string
	return testbed.Main(&dir, func() int {
		brokerPath = filepath.Join(dir, "broker")
		return redistest.Main(m, &redisServer, nil)
	}, "switchboard/cmd/broker")
}
