package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var raceBinaries = flag.Bool("race-binaries", false, "build the brokers and the janitor with the race detector")

// binaries is where TestMain puts broker and janitor.
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
	args := []string{"build", "-o", dir + string(filepath.Separator)}
	if *raceBinaries {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, "switchboard/cmd/broker", "switchboard/cmd/janitor")...)
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v: %v\n%s", build.Args, err, out)
		return 1
	}
	return m.Run()
}

// checkTools fails where a test that needs no such thing would skip.
func checkTools() error {
	const remedy = "run `make install-test-tools`"
	for _, tool := range []string{"redis-server", "node", "chromium", "nc"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%w; %s", err, remedy)
		}
	}
	if _, err := os.Stat("js/node_modules/ws"); err != nil {
		return fmt.Errorf("the npm package ws is not installed: %w; %s", err, remedy)
	}
	return nil
}
