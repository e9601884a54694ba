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

// crowd is one process of subscribers, seen from outside.
type crowd struct {
	args []string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	log  strings.Builder
}

func newCrowd(addr, transport string, connections int, clients string) *crowd {
	return &crowd{args: []string{subscribersCommand, addr, transport, fmt.Sprint(connections), clients}}
}

// open starts the process, which ends with ctx, and returns when all are subscribed.
func (c *crowd) open(ctx context.Context) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, c.args...)
	// One processor each, and a small heap: there are as many of them as brokers.
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
	return c.hear("ready")
}

// await tells everybody that a message is to come.
func (c *crowd) await() error {
	if _, err := fmt.Fprintln(c.in); err != nil {
		return err
	}
	return c.hear("waiting")
}

// hear waits for a line.
func (c *crowd) hear(want string) error {
	line, err := c.out.ReadString('\n')
	if err == nil && strings.TrimSpace(line) == want {
		return nil
	}
	_ = c.in.Close()
	_ = c.cmd.Wait() // what it logged is whole then
	return fmt.Errorf("subscribers of %s: %q instead of %q (%v): %s", c.args[1], line, want, err, &c.log)
}

// finish ends the process, which checks what it received.
func (c *crowd) finish() error {
	_ = c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("subscribers of %s: %w: %s", c.args[1], err, &c.log)
	}
	return nil
}

func (c *crowd) kill() {
	if c.cmd != nil && c.cmd.ProcessState == nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	}
}
