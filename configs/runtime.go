package configs

import (
	"fmt"
	"strconv"
	"time"
)

// Runtime tunes the Go runtime and the kernel's timers.
type Runtime struct {
	TimerSlack time.Duration `setting:"runtime.timer_slack" default:"5ms" zero:"true" help:"delay that the kernel may add to timers of the broker (Linux), so that the Go\nruntime checks its threads less often; 0 keeps the system's. The broker changes\nnothing if GOMAXPROCS or another slack is already set"`
	SpareProcs string        `setting:"runtime.spare_procs" default:"auto" number:"true" help:"by how much GOMAXPROCS exceeds the number of processors: a number, off, or auto, which doubles GOMAXPROCS without a CPU quota and adds nothing with one. GOMAXPROCS always exceeds the number of event loops. GOMAXPROCS in the environment overrides this"`
}

// AutoSpare is the result of Spare for auto.
const AutoSpare = -1

// maxSpare is the maximum of spare_procs.
const maxSpare = 1024

// Spare returns by how much GOMAXPROCS exceeds the number of processors, or AutoSpare.
func (r Runtime) Spare() (int, error) {
	switch r.SpareProcs {
	case "auto":
		return AutoSpare, nil
	case "off":
		return 0, nil
	}
	n, err := strconv.Atoi(r.SpareProcs)
	if err != nil || n < 0 || n > maxSpare {
		return 0, fmt.Errorf("runtime.spare_procs: want auto, off or a number up to %d, got %q", maxSpare, r.SpareProcs)
	}
	return n, nil
}

func (r Runtime) validate() error {
	_, err := r.Spare()
	return err
}
