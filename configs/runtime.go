package configs

import (
	"fmt"
	"strconv"
	"time"
)

// Runtime is how the broker uses the Go runtime and the kernel's timers.
type Runtime struct {
	TimerSlack time.Duration `setting:"timer_slack"`
	SpareProcs string        `setting:"spare_procs"` // auto, off or a number
}

var runtimeGroup = group{"The Go runtime", []about{
	{key: "runtime.timer_slack", zero: true, text: "how much later than asked the kernel may wake the broker (Linux), so that the Go\n" +
		"runtime looks after its threads less often; 0 leaves the slack alone. Nothing is\nchanged where GOMAXPROCS or another slack is set already"},
	{key: "runtime.spare_procs", number: true, text: "how many more goroutines may run at once than there are processors (GOMAXPROCS):\n" +
		"auto for as many again where no CPU quota applies and none where one does, a number,\nor off. One place is left beside the event loops in any case. GOMAXPROCS in the\nenvironment overrides this"},
}}

// AutoSpare is what Spare returns for auto.
const AutoSpare = -1

// maxSpare bounds the number.
const maxSpare = 1024

func defaultRuntime() Runtime { return Runtime{TimerSlack: 5 * time.Millisecond, SpareProcs: "auto"} }

// Spare is the number of spare places, or AutoSpare.
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
