package serve

import (
	"io"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// The timer slack is the delay that the kernel may add to the timers of a thread. An event loop
// that waits for its sockets keeps its P (one of GOMAXPROCS) for 10 ms. During that time a thread
// of the runtime (sysmon) checks every 20 µs whether another goroutine needs the P. If the loops
// wake often enough, these checks never stop. They took 15 to 45 % of the CPU of a broker with
// 125 subscribers and 50 to 130 pushes a second. With a slack of 5 ms there are two checks in 10
// ms.
//
// The table compares the system's slack of 50 µs with 5 ms, on two processors. A slack of 1 ms
// saved half as much.
//
//	                                                     50 µs     5 ms
//	CPU of a push to 1,000 subscribers, one broker      6.9 ms   5.8 ms
//	the same over 8 brokers on a busy machine            17 ms   7.9 ms
//	CPU of a push, 32 publishers on 10,000 channels      94 µs    83 µs
//	the same in batches of 100                           58 µs    47 µs
//	CPU of a delivery, 16 publishers on one channel    0.45 µs  0.36 µs
//	latency at a fixed rate, median (five runs each)    2.8 ms   1.3 ms
//	the same, 99th percentile                            57 ms    12 ms
const (
	// systemSlack is the kernel's default (PR_SET_TIMERSLACK in prctl(2)).
	systemSlack = 50 * time.Microsecond
	// slackMarker is an environment variable with the id of the process that has re-executed itself.
	// It guards against an exec loop if the slack does not stick.
	slackMarker = "_SWITCHBOARD_TIMER_SLACK"
)

// coarseTimers sets the timer slack and executes this program again, in the same process: a thread
// inherits the slack of its creator, and the threads of the runtime exist already. It does nothing
// in these cases:
//
//   - slack is zero.
//   - Another slack is already set, for example by TimerSlackNSec in a systemd unit.
//   - GOMAXPROCS is set: there may be no spare P, and then the check every 20 µs is needed.
//   - The configuration cannot be read a second time.
//   - A system call fails.
func coarseTimers(slack time.Duration, args []string) {
	pid := strconv.Itoa(os.Getpid())
	if slack == 0 || os.Getenv("GOMAXPROCS") != "" || os.Getenv(slackMarker) == pid || !readableTwice(args) {
		return
	}
	program, err := os.Executable() // not /proc/self/exe, which would become the name of the process
	if err != nil {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil || time.Duration(now) != systemSlack {
		return
	}
	if unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0) != nil {
		return
	}
	_ = syscall.Exec(program, os.Args, append(os.Environ(), slackMarker+"="+pid))
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(systemSlack), 0, 0, 0)
}

// readableTwice returns false for a configuration in a pipe, like --config <(command): the second
// read would find it empty.
func readableTwice(args []string) bool {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	path := flags.String("config", os.Getenv("SWITCHBOARD_CONFIG"), "")
	if err := flags.Parse(args); err != nil {
		return false
	}
	if *path == "" {
		return true
	}
	file, err := os.Stat(*path)
	return err == nil && file.Mode().IsRegular()
}
