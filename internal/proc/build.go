package proc

import (
	"context"
	"fmt"
	"os/exec"
)

// GoBuild runs go build with these arguments. The error holds the output of the compiler.
func GoBuild(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return nil
}
