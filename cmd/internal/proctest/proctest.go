// Package proctest builds a command once and runs it as a process, for the tests of the
// commands.
package proctest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"switchboard/internal/proc"
)

// timeout bounds every wait for a process, so that a test cannot hang.
const timeout = time.Minute

// Main builds the command in the current directory, sets binary to its path, runs the tests and
// returns their exit code.
func Main(m *testing.M, binary *string) int {
	dir, err := os.MkdirTemp("", "switchboard-cmd-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	*binary = filepath.Join(dir, "command")
	if err := proc.GoBuild(context.Background(), "-o", *binary, "."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// Result is the outcome of a process.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// Run runs a process to its end, with only the given environment.
func Run(t *testing.T, environ []string, binary string, args ...string) Result {
	t.Helper()
	return RunInput(t, environ, "", binary, args...)
}

// RunInput is like Run, with a text as the standard input.
func RunInput(t *testing.T, environ []string, stdin, binary string, args ...string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = append([]string{}, environ...), strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited || ctx.Err() != nil {
		t.Fatalf("%v %v: %v\n%s", binary, args, err, &stderr)
	}
	return Result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// Process is a running process that logs JSON to stderr.
type Process struct {
	cmd   *exec.Cmd
	lines chan string
	ended chan struct{}

	mu  sync.Mutex // guards log
	log strings.Builder
}

// Start starts a process, which is killed at the end of the test.
func Start(t *testing.T, environ []string, binary string, args ...string) *Process {
	t.Helper()
	p := &Process{
		cmd:   exec.Command(binary, append(args, "--log-format=json")...),
		lines: make(chan string, 10_000), ended: make(chan struct{}),
	}
	p.cmd.Env = append([]string{}, environ...)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.read(stderr)
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("the process wrote:\n%s", p.Log())
		}
	})
	return p
}

func (p *Process) read(stderr io.Reader) {
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		p.mu.Lock()
		fmt.Fprintln(&p.log, lines.Text())
		p.mu.Unlock()
		p.lines <- lines.Text()
	}
	_ = p.cmd.Wait()
	close(p.lines)
	close(p.ended)
}

// PID returns the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log returns the log up to now.
func (p *Process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// Await reads further log lines until a message begins with prefix. It returns the fields of that
// line.
func (p *Process) Await(t *testing.T, prefix string) map[string]any {
	t.Helper()
	expired := time.After(timeout)
	for {
		select {
		case line, open := <-p.lines:
			if !open {
				t.Fatalf("the process ended without logging %q", prefix)
			}
			var fields map[string]any
			if json.Unmarshal([]byte(line), &fields) != nil {
				continue
			}
			if message, _ := fields["message"].(string); strings.HasPrefix(message, prefix) {
				return fields
			}
		case <-expired:
			t.Fatalf("the process did not log %q", prefix)
		}
	}
}

// Signal sends a signal.
func (p *Process) Signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// SignalUntilEnd repeats the signal until the process ends.
func (p *Process) SignalUntilEnd(t *testing.T, s syscall.Signal) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		select {
		case <-p.ended:
			return
		case <-tick.C:
		}
	}
}

// Wait waits for the end of the process and returns its exit code, -1 for the end by a signal.
func (p *Process) Wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(timeout):
		t.Fatal("the process does not end")
		return 0
	}
}
