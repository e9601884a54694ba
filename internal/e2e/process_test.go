package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// keptLines is how much of a process's log a failure shows.
const keptLines = 40

// process is a child of the test.
type process struct {
	name string
	cmd  *exec.Cmd

	bell         // guards the fields below
	lines []line // of the log
	ended bool
}

// line is one line of a log, with its fields when it is JSON.
type line struct {
	text   string
	fields map[string]any
}

// start runs a command until the end of the test. onLine, unless nil, takes stdout, which
// else goes into the log with stderr.
func start(t *testing.T, name string, cmd *exec.Cmd, onLine func([]byte)) *process {
	t.Helper()
	p := &process{name: name, cmd: cmd}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Chromium and Node have children
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	sources := []func(){func() { p.scan(log, p.note) }}
	if onLine != nil {
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, func() { p.scan(out, onLine) })
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.wait(sources)
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = p.await(context.Background(), func() bool { return p.ended })
		if t.Failed() {
			t.Logf("the last words of %s:\n%s", name, p.tail())
		}
	})
	return p
}

// wait reads all there is, which must come before Wait.
func (p *process) wait(sources []func()) {
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
	p.change(func() { p.ended = true })
}

func (p *process) scan(r io.Reader, onLine func([]byte)) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		onLine(lines.Bytes())
	}
}

func (p *process) note(text []byte) {
	l := line{text: string(text)}
	_ = json.Unmarshal(text, &l.fields)
	p.change(func() { p.lines = append(p.lines, l) })
}

func (p *process) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, l := range p.lines[max(0, len(p.lines)-keptLines):] {
		fmt.Fprintln(&b, l.text)
	}
	return b.String()
}

// logged waits for a line with that message and gives one of its fields.
func (p *process) logged(ctx context.Context, t *testing.T, message, field string) string {
	t.Helper()
	var value string
	found := false
	err := p.await(ctx, func() bool {
		for _, l := range p.lines {
			if l.fields["message"] == message {
				value, found = fmt.Sprint(l.fields[field]), true
			}
		}
		return found || p.ended
	})
	if err != nil || !found {
		t.Fatalf("%s never said %q (%v)", p.name, message, err)
	}
	return value
}

// end sends a signal and waits for the end of the process.
func (p *process) end(ctx context.Context, t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	if err := p.await(ctx, func() bool { return p.ended }); err != nil {
		t.Fatalf("%s did not end by %s: %v", p.name, sig, err)
	}
	if code := p.cmd.ProcessState.ExitCode(); sig == syscall.SIGTERM && code != 0 {
		t.Errorf("%s ended with %d, want 0", p.name, code)
	}
}
