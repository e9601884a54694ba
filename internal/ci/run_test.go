//go:build long

package ci

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestMakeRun: make run says where the console is, shows nothing of gnet, and ends at Ctrl-C
// without an error.
func TestMakeRun(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "make", "-C", root, "run", "ARGS=--http 127.0.0.1:0 --tcp 127.0.0.1:0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal interrupts the whole group
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }()
	_ = write.Close()
	console := false
	var text strings.Builder
	for lines := bufio.NewScanner(read); lines.Scan(); text.WriteString(lines.Text() + "\n") {
		if !console && strings.Contains(lines.Text(), "/console/") {
			console = true
			if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // make ends by the signal
	if out := text.String(); !console || strings.Contains(out, "***") || strings.Contains(out, "gnet") || !strings.Contains(out, "http://127.0.0.1:") {
		t.Errorf("%s", out)
	}
}
