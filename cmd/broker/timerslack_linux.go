package main

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

// The timer slack is by how much the kernel may wake a thread of this process too late. An event
// loop that waits for its sockets keeps its place in the Go runtime for 10 ms, and so long a thread
// of the runtime (sysmon) looks every 20 µs whether the place is wanted by anybody, so with every
// loop that is woken now and then for ever. That was 15 to 45 % of the CPU of a broker with 125
// subscribers and 50 to 130 pushes a second. Two looks are enough.
//
// With two processors, at the system's 50 µs / 5 ms: a push to 1,000 subscribers 6.9 / 5.8 ms of
// CPU over one broker and 17 / 7.9 ms over 8 on a busy machine; 32 publishers on 10,000 channels 94
// / 83 µs a push, in batches of 100 58 / 47 µs; 16 publishers on one channel 0.45 / 0.36 µs a
// delivery; the latency at a fixed rate 2.8 / 1.3 ms in the middle and 57 / 12 ms at the 99th
// percentile (five pairs of runs). 1 ms saved half as much.
const (
	// systemSlack is what the kernel gives a process that nobody has given another (PR_SET_TIMERSLACK in prctl(2)).
	systemSlack = 50 * time.Microsecond
	// slackMarker in the environment is the id of the process that has begun anew. Guards against
	// an exec loop if the slack does not stick.
	slackMarker = "_SWITCHBOARD_TIMER_SLACK"
)

// coarseTimers begins this process anew, with the same id, with the given slack: a thread has the
// slack of the one that made it, and the runtime's are made before ours. Zero changes nothing. Nor
// is anything changed where another slack was set already (TimerSlackNSec in a systemd unit, say);
// where GOMAXPROCS is set, since there may be no places to spare, so that the look after 20 µs is
// needed; and where the configuration cannot be read a second time. When it cannot be done the
// process goes on as it is.
func coarseTimers(slack time.Duration, args []string) {
	pid := strconv.Itoa(os.Getpid())
	if slack == 0 || os.Getenv("GOMAXPROCS") != "" || os.Getenv(slackMarker) == pid || !readsTwice(args) {
		return
	}
	program, err := os.Executable() // and not /proc/self/exe, whose name the process would have
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

// readsTwice is false for a configuration in a pipe, as of --config <(command): it is empty the
// second time.
func readsTwice(args []string) bool {
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
