package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// subscriberProcess controls a separate process that holds many subscribers.
type subscriberProcess struct {
	args []string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	log  strings.Builder
}

func newSubscriberProcess(addr, transport string, connections int, clients string) *subscriberProcess {
	return &subscriberProcess{args: []string{subscribersCommand, addr, transport, fmt.Sprint(connections), clients}}
}

// open starts the process, and returns after all its connections are subscribed. The process ends
// with ctx.
func (c *subscriberProcess) open(ctx context.Context) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, c.args...)
	// One processor and a small heap for each process: there are as many of them as brokers.
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=50")
	cmd.Stderr = &c.log
	if c.in, err = cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.cmd, c.out = cmd, bufio.NewReader(out)
	return c.expectLine("ready")
}

// expectMessage makes the process wait for the next message.
func (c *subscriberProcess) expectMessage() error {
	if _, err := fmt.Fprintln(c.in); err != nil {
		return err
	}
	return c.expectLine("waiting")
}

// expectLine reads a line and returns an error if it is not the one wanted.
func (c *subscriberProcess) expectLine(want string) error {
	line, err := c.out.ReadString('\n')
	if err == nil && strings.TrimSpace(line) == want {
		return nil
	}
	_ = c.in.Close()
	_ = c.cmd.Wait() // the log is complete after Wait
	return fmt.Errorf("subscribers of %s: %q instead of %q (%v): %s", c.args[1], line, want, err, &c.log)
}

// finish ends the process. It fails if the process received anything wrong.
func (c *subscriberProcess) finish() error {
	_ = c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("subscribers of %s: %w: %s", c.args[1], err, &c.log)
	}
	return nil
}

func (c *subscriberProcess) kill() {
	if c.cmd != nil && c.cmd.ProcessState == nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	}
}
