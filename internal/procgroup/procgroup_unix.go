//go:build unix

package procgroup

import (
	"os"
	"os/exec"
	"syscall"
)

// Set puts the process of cmd into a new process group. Call it before cmd starts. An interrupt on
// the terminal does not reach the group.
func Set(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Kill kills the process group of p, which was started with Set, also what
// still runs in it after p has exited.
func Kill(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
