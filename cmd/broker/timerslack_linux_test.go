package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"switchboard/internal/testbed"
)

const (
	// systemSlack is the kernel's default.
	systemSlack = 50 * time.Microsecond
	// slackMarker is the variable of a process that has executed itself again.
	slackMarker = "_SWITCHBOARD_TIMER_SLACK"
)

// reexecuted starts a broker. It reports whether the process executed itself again, and its timer
// slack, 0 without the privilege to read it.
func reexecuted(t *testing.T, environ ...string) (again bool, slack time.Duration) {
	t.Helper()
	p, _ := start(t, environ)
	file := func(name string) string {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.PID(), name))
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	if name := file("comm"); name != "broker" {
		t.Errorf("the process is called %q", name)
	}
	_, _ = fmt.Sscan(file("timerslack_ns"), &slack) // needs a privilege
	marker := fmt.Sprintf("%s=%d", slackMarker, p.PID())
	return slices.Contains(strings.Split(file("environ"), "\x00"), marker), slack
}

func TestCoarseTimers(t *testing.T) {
	const setting = "SWITCHBOARD_RUNTIME_TIMER_SLACK="
	for _, c := range []struct {
		name    string
		environ []string
		again   bool
		slack   time.Duration
	}{
		{"the default", nil, true, 5 * time.Millisecond},
		{"a setting", []string{setting + "2ms"}, true, 2 * time.Millisecond},
		{"off", []string{setting + "0"}, false, systemSlack},
		{"GOMAXPROCS", []string{"GOMAXPROCS=2"}, false, systemSlack},
	} {
		if again, slack := reexecuted(t, c.environ...); again != c.again || slack != c.slack && slack != 0 {
			t.Errorf("%s: executed again: %v, slack %v; want %v, %v", c.name, again, slack, c.again, c.slack)
		}
	}
}

// TestConfigurationFromAPipe: a configuration works although it can be read only once.
func TestConfigurationFromAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "b.yaml")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	for _, args := range [][]string{{"--config", pipe}, {"--log-level=info", "--config=" + pipe, "--insecure"}} {
		go func() { written <- os.WriteFile(pipe, []byte("http: 127.0.0.1:0\ntcp: \"off\"\nname: piped\n"), 0) }()
		p := testbed.RunCommand(t, nil, binary, args...)
		if err := <-written; err != nil {
			t.Fatal(err)
		}
		if id := fmt.Sprint(p.Await("joined")["server"]); !strings.HasPrefix(id, "piped-") {
			t.Errorf("the server is %s", id)
		}
	}
}

// TestInheritedSlack: a broker keeps a slack that its parent process has set.
func TestInheritedSlack(t *testing.T) {
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
	if again, slack := reexecuted(t); again || slack != own && slack != 0 {
		t.Errorf("executed again: %v, slack %v; want %v", again, slack, own)
	}
}
