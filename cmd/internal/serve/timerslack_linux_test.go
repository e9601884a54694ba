package serve

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSlackIsSetOnce: if the slack does not stick, the process continues without it.
func TestSlackIsSetOnce(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	t.Setenv(slackMarker, fmt.Sprint(os.Getpid()))
	coarseTimers(5*time.Millisecond, nil) // otherwise this would execute the test again
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil || time.Duration(now) != systemSlack {
		t.Errorf("the slack is %v (%v)", time.Duration(now), err)
	}
}
