package testbed

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"

	"switchboard/internal/cond"
	"switchboard/internal/procgroup"
)

// A Process is a running or ended program.
type Process struct {
	Name string
	cmd  *exec.Cmd

	cond  cond.Cond // guards the fields below
	lines []line    // the log
	next  int       // number of lines that Next has read
	ended bool
}

// A line is one line of a log.
type line struct {
	text   string
	fields map[string]any // nil if the line is not JSON
}

// Start starts a command. If onLine is not nil, it receives each line of stdout; otherwise stdout
// is discarded. Stderr is the log. The caller must call Kill.
func Start(name string, cmd *exec.Cmd, onLine func([]byte)) (*Process, error) {
	p := &Process{Name: name, cmd: cmd}
	procgroup.Set(cmd) // so that Kill reaches its children
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	sources := []func(){func() { scan(log, p.addLine) }}
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

// wait reads the output to its end and then waits for the process. [exec.Cmd.Wait] requires this
// order.
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
	p.cond.Change(func() { p.ended = true })
}

func scan(r io.Reader, onLine func([]byte)) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		onLine(lines.Bytes())
	}
}

func (p *Process) addLine(text []byte) {
	l := line{text: string(text)}
	_ = json.Unmarshal(text, &l.fields)
	p.cond.Change(func() { p.lines = append(p.lines, l) })
}

// Tail returns the last n lines of the log. Zero means all lines.
func (p *Process) Tail(n int) string {
	p.cond.Lock()
	defer p.cond.Unlock()
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

// Logged waits for a log line with this message. It returns one field of the last such line,
// "" if the line lacks it.
func (p *Process) Logged(ctx context.Context, message, field string) (string, error) {
	var value string
	found := false
	err := p.cond.Await(ctx, func() bool {
		for _, l := range p.lines {
			if l.fields["message"] == message {
				if value, found = "", true; l.fields[field] != nil {
					value = fmt.Sprint(l.fields[field])
				}
			}
		}
		return found || p.ended
	})
	if err != nil || !found {
		return "", fmt.Errorf("%s did not log %q (%v)", p.Name, message, err)
	}
	return value, nil
}

// Next reads further log lines until a message begins with prefix. It returns the fields of that
// line.
func (p *Process) Next(ctx context.Context, prefix string) (map[string]any, error) {
	var found map[string]any
	err := p.cond.Await(ctx, func() bool {
		for ; found == nil && p.next < len(p.lines); p.next++ {
			fields := p.lines[p.next].fields
			if message, _ := fields["message"].(string); fields != nil && strings.HasPrefix(message, prefix) {
				found = fields
			}
		}
		return found != nil || p.ended
	})
	if found == nil {
		return nil, fmt.Errorf("%s did not log %q (%v)", p.Name, prefix, err)
	}
	return found, nil
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	return nil
}

// Wait waits until the process ends and returns its exit code, or -1 if a signal ended it.
func (p *Process) Wait(ctx context.Context) (code int, err error) {
	if err := p.cond.Await(ctx, func() bool { return p.ended }); err != nil {
		return 0, fmt.Errorf("%s did not end: %w\n%s", p.Name, err, p.Tail(10))
	}
	return p.cmd.ProcessState.ExitCode(), nil
}

// End sends a signal and waits until the process ends. After SIGTERM, an exit code other than 0 is
// an error.
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

// Kill kills the process and its children and waits until the process has ended. It may be called
// again.
func (p *Process) Kill() {
	_ = procgroup.Kill(p.cmd.Process)
	_, _ = p.Wait(context.Background())
}
