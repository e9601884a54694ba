package procgroup

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// Set puts the process of cmd into a new process group. Call it before cmd starts. An interrupt on
// the terminal does not reach the group.
func Set(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// Kill kills p, whose command had Set, and the processes below it. Windows keeps no list of a
// group, so taskkill follows the parents of processes.
func Kill(p *os.Process) error {
	if err := exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(p.Pid)).Run(); err != nil {
		return p.Kill()
	}
	return nil
}
