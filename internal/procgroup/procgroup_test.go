package procgroup_test

import (
	"bufio"
	"io"
	"os/exec"
	"testing"

	"switchboard/internal/procgroup"
)

// TestKill: Kill ends a process that the command has started.
func TestKill(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "(echo started; exec sleep 600) & wait")
	procgroup.Set(cmd)
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(stdout)
	if line, err := out.ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	if err := procgroup.Kill(cmd.Process); err != nil {
		t.Error(err)
	}
	// The pipe ends when no process has it open.
	if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the command has succeeded")
	}
}
