//go:build long

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"switchboard/internal/proc"
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
	dir, err := os.MkdirTemp("", "switchboard-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binaries = dir
	args := []string{"-o", dir + string(filepath.Separator)}
	if *raceBinaries {
		args = append(args, "-race")
	}
	if err := proc.GoBuild(context.Background(), append(args, "switchboard/cmd/broker", "switchboard/cmd/janitor")...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
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
