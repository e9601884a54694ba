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

// Kill kills the process group of p, whose command had Set. The group may outlive p.
func Kill(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
