// Package proc runs programs for tests and measurements, and reads what they log.
package proc

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"

	"switchboard/internal/bell"
)

// Process is a program that was started.
type Process struct {
	Name string
	cmd  *exec.Cmd

	bell  bell.Bell // guards the fields below
	lines []line    // of the log
	ended bool
}

// line is one line of a log, with its fields when it is JSON.
type line struct {
	text   string
	fields map[string]any
}

// Start runs a command. onLine, unless nil, takes stdout, which else goes nowhere; stderr is
// the log. The caller calls Kill.
func Start(name string, cmd *exec.Cmd, onLine func([]byte)) (*Process, error) {
	p := &Process{Name: name, cmd: cmd}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it may have children
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	sources := []func(){func() { scan(log, p.note) }}
	if onLine != nil {
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		sources = append(sources, func() { scan(out, onLine) })
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go p.wait(sources)
	return p, nil
}

// wait reads all there is, which must come before Wait.
func (p *Process) wait(sources []func()) {
	done := make(chan struct{})
	for _, source := range sources {
		go func() {
			source()
			done <- struct{}{}
		}()
	}
	for range sources {
		<-done
	}
	_ = p.cmd.Wait()
	p.bell.Change(func() { p.ended = true })
}

func scan(r io.Reader, onLine func([]byte)) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		onLine(lines.Bytes())
	}
}

func (p *Process) note(text []byte) {
	l := line{text: string(text)}
	_ = json.Unmarshal(text, &l.fields)
	p.bell.Change(func() { p.lines = append(p.lines, l) })
}

// Tail is the last n lines of the log, all of them for 0.
func (p *Process) Tail(n int) string {
	p.bell.Lock()
	defer p.bell.Unlock()
	first := 0
	if n > 0 {
		first = max(0, len(p.lines)-n)
	}
	var b strings.Builder
	for _, l := range p.lines[first:] {
		fmt.Fprintln(&b, l.text)
	}
	return b.String()
}

// Logged waits for a line with that message and gives one field of the last such line.
func (p *Process) Logged(ctx context.Context, message, field string) (string, error) {
	var value string
	found := false
	err := p.bell.Await(ctx, func() bool {
		for _, l := range p.lines {
			if l.fields["message"] == message {
				value, found = fmt.Sprint(l.fields[field]), true
			}
		}
		return found || p.ended
	})
	if err != nil || !found {
		return "", fmt.Errorf("%s never said %q (%v)", p.Name, message, err)
	}
	return value, nil
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	return nil
}

// Wait waits for the end and gives the exit code, -1 for the end by a signal.
func (p *Process) Wait(ctx context.Context) (code int, err error) {
	if err := p.bell.Await(ctx, func() bool { return p.ended }); err != nil {
		return 0, fmt.Errorf("%s did not end: %w", p.Name, err)
	}
	return p.cmd.ProcessState.ExitCode(), nil
}

// End sends a signal and waits for the end. After SIGTERM another exit code than 0 is an
// error.
func (p *Process) End(ctx context.Context, sig syscall.Signal) error {
	if err := p.Signal(sig); err != nil {
		return err
	}
	code, err := p.Wait(ctx)
	if err == nil && sig == syscall.SIGTERM && code != 0 {
		err = fmt.Errorf("%s ended with %d, want 0", p.Name, code)
	}
	return err
}

// Kill ends the process and its children, and waits. It does no harm when they are gone.
func (p *Process) Kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	_, _ = p.Wait(context.Background())
}
