//go:build long

package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"switchboard/internal/testbed"
)

var raceBinaries = flag.Bool("race-binaries", false, "build the brokers and the janitor with the race detector")

// binaries is the directory of the broker and the janitor that TestMain builds.
var binaries string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if err := checkTools(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	args := []string{"switchboard/cmd/broker", "switchboard/cmd/janitor"}
	if *raceBinaries {
		args = append([]string{"-race"}, args...)
	}
	return testbed.Main(&binaries, m.Run, args...)
}

// checkTools returns an error if a tool is missing. The tests fail then; they do not skip.
func checkTools() error {
	const remedy = "run `make install-test-tools`"
	for _, tool := range []string{"redis-server", "node", "chromium", "nc"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%w; %s", err, remedy)
		}
	}
	for _, name := range []string{"ws", "eventsource"} {
		if _, err := os.Stat("js/node_modules/" + name); err != nil {
			return fmt.Errorf("the npm package %s is not installed: %w; %s", name, err, remedy)
		}
	}
	return nil
}
