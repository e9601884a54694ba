package testbed

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build runs go build with these arguments. The error holds the output of the compiler.
func Build(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return nil
}

// Main is the body of a TestMain whose tests run programs. It builds them, with these arguments of
// go build, into a directory that exists until the tests have ended, sets dir to its path, and
// returns the exit code of run.
func Main(dir *string, run func() int, args ...string) int {
	into, err := os.MkdirTemp("", "switchboard-test-")
	if err == nil {
		defer os.RemoveAll(into)
		*dir = into
		err = Build(context.Background(), append([]string{"-o", into + string(filepath.Separator)}, args...)...)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}
