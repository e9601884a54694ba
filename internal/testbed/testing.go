package testbed

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Timeout bounds the waits of this file, so that a test cannot hang.
const Timeout = time.Minute

// tailLines is the number of log lines that a failed test shows.
const tailLines = 40

// within returns a context that ends after Timeout, or with the test.
func within(tb testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(tb.Context(), Timeout)
}

// Run runs a command until the test ends. A failed test shows the end of its log. See Start for
// onLine.
func Run(tb testing.TB, name string, cmd *exec.Cmd, onLine func([]byte)) *Process {
	tb.Helper()
	p, err := Start(name, cmd, onLine)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		p.Kill()
		if tb.Failed() {
			tb.Logf("log of %s:\n%s", name, p.Tail(tailLines))
		}
	})
	return p
}

// RunBroker runs a broker until the test ends.
func RunBroker(tb testing.TB, b *Broker) *Broker {
	tb.Helper()
	endWith(tb, &b.Program)
	ctx, cancel := within(tb)
	defer cancel()
	if err := b.Start(ctx); err != nil {
		tb.Fatal(err)
	}
	return b
}

// RunProgram runs a program until the test ends.
func RunProgram(tb testing.TB, p *Program) *Program {
	tb.Helper()
	endWith(tb, p)
	if err := p.Start(); err != nil {
		tb.Fatal(err)
	}
	return p
}

// endWith kills a program when the test ends.
func endWith(tb testing.TB, p *Program) {
	tb.Cleanup(func() {
		if p.Kill(); tb.Failed() && p.Process != nil {
			tb.Logf("log of %s:\n%s", p.Name, p.Tail(tailLines))
		}
	})
}

// Result is the outcome of a command.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// Execute runs a command to its end, with only the given environment.
func Execute(tb testing.TB, environ []string, path string, args ...string) Result {
	tb.Helper()
	return ExecuteInput(tb, environ, "", path, args...)
}

// ExecuteInput is like Execute, with a text as the standard input.
func ExecuteInput(tb testing.TB, environ []string, stdin, path string, args ...string) Result {
	tb.Helper()
	ctx, cancel := within(tb)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = append([]string{}, environ...), strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited || ctx.Err() != nil {
		tb.Fatalf("%v %v: %v\n%s", path, args, err, &stderr)
	}
	return Result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// A Command is a process of a test that logs JSON. Its errors end the test.
type Command struct {
	*Process
	tb testing.TB
}

// RunCommand runs a command until the test ends, with only the given environment.
func RunCommand(tb testing.TB, environ []string, path string, args ...string) *Command {
	tb.Helper()
	cmd := exec.Command(path, append(args, "--log-format=json")...)
	cmd.Env = append([]string{}, environ...)
	return &Command{Run(tb, "the process", cmd, nil), tb}
}

// Await is Next with errors that end the test.
func (c *Command) Await(prefix string) map[string]any {
	c.tb.Helper()
	ctx, cancel := within(c.tb)
	defer cancel()
	fields, err := c.Next(ctx, prefix)
	if err != nil {
		c.tb.Fatal(err)
	}
	return fields
}

// Interrupt sends a signal.
func (c *Command) Interrupt(sig syscall.Signal) {
	c.tb.Helper()
	if err := c.Signal(sig); err != nil {
		c.tb.Fatal(err)
	}
}

// SignalUntilEnd repeats the signal until the process ends.
func (c *Command) SignalUntilEnd(sig syscall.Signal) {
	c.tb.Helper()
	for ended := false; !ended; {
		if err := c.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			c.tb.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(c.tb.Context(), 10*time.Millisecond)
		_, err := c.Wait(ctx)
		ended = err == nil
		cancel()
	}
}

// ExitCode waits for the end of the process and returns its exit code, -1 for the end by a signal.
func (c *Command) ExitCode() int {
	c.tb.Helper()
	ctx, cancel := within(c.tb)
	defer cancel()
	code, err := c.Wait(ctx)
	if err != nil {
		c.tb.Fatal(err)
	}
	return code
}
