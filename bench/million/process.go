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

func newSubscriberProcess(addr, transport string, connections int, clientPrefix string) *subscriberProcess {
	return &subscriberProcess{args: []string{subscribersCommand, addr, transport, fmt.Sprint(connections), clientPrefix}}
}

// open starts the process, and returns after all its connections are subscribed. The process ends
// with ctx.
func (p *subscriberProcess) open(ctx context.Context) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, p.args...)
	// One processor and a small heap for each process: there are as many of them as brokers.
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=50")
	cmd.Stderr = &p.log
	if p.in, err = cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd, p.out = cmd, bufio.NewReader(out)
	return p.expectLine("ready")
}

// expectMessage makes the process wait for the next message, and returns when it waits.
func (p *subscriberProcess) expectMessage() error {
	if _, err := fmt.Fprintln(p.in); err != nil {
		return err
	}
	return p.expectLine("waiting")
}

// expectLine reads a line and returns an error if it is not the one wanted.
func (p *subscriberProcess) expectLine(want string) error {
	line, err := p.out.ReadString('\n')
	if err == nil && strings.TrimSpace(line) == want {
		return nil
	}
	_ = p.in.Close()
	_ = p.cmd.Wait() // the log is complete after Wait
	return fmt.Errorf("subscribers of %s: %q instead of %q (%v): %s", p.args[1], line, want, err, &p.log)
}

// finish ends the process. It fails if the process received anything wrong.
func (p *subscriberProcess) finish() error {
	_ = p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("subscribers of %s: %w: %s", p.args[1], err, &p.log)
	}
	return nil
}

func (p *subscriberProcess) kill() {
	if p.cmd != nil && p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}
