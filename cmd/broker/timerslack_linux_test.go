package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// begunAnew says whether a process that serves by now had begun anew before, and its timer slack, if the system tells us.
func begunAnew(t *testing.T, environ ...string) (anew bool, slack time.Duration) {
	t.Helper()
	p, _ := start(t, environ)
	file := func(name string) string {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.PID(), name))
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	if name := file("comm"); name != "command" {
		t.Errorf("the process is called %q", name)
	}
	_, _ = fmt.Sscan(file("timerslack_ns"), &slack) // which takes privileges
	marker := fmt.Sprintf("%s=%d", slackMarker, p.PID())
	return slices.Contains(strings.Split(file("environ"), "\x00"), marker), slack
}

func TestCoarseTimers(t *testing.T) {
	if anew, slack := begunAnew(t); !anew || slack != timerSlack && slack != 0 {
		t.Errorf("begun anew: %v, and the slack is %v; want %v", anew, slack, timerSlack)
	}
	if anew, slack := begunAnew(t, "GOMAXPROCS=2"); anew || slack != systemSlack && slack != 0 {
		t.Errorf("with GOMAXPROCS: begun anew: %v, and the slack is %v; want %v", anew, slack, systemSlack)
	}
}

// TestSlackOfSomebodyElse stays: a child has its parent's.
func TestSlackOfSomebodyElse(t *testing.T) {
	const own = 70 * time.Microsecond
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	set := func(d time.Duration) {
		t.Helper()
		if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(d), 0, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	set(own)
	defer set(systemSlack)
	if anew, slack := begunAnew(t); anew || slack != own && slack != 0 {
		t.Errorf("begun anew: %v, and the slack is %v; want %v", anew, slack, own)
	}
}

// TestSlackIsSetOnce: where it does not last, the process goes on without.
func TestSlackIsSetOnce(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	t.Setenv(slackMarker, fmt.Sprint(os.Getpid()))
	coarseTimers() // else the test would begin anew
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil || time.Duration(now) != systemSlack {
		t.Errorf("the slack is %v (%v)", time.Duration(now), err)
	}
}
