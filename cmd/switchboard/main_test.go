package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"switchboard/internal/testbed"
)

var binary string

func TestMain(m *testing.M) {
	var dir string
	os.Exit(testbed.Main(&dir, func() int {
		binary = filepath.Join(dir, "switchboard")
		return m.Run()
	}, "."))
}

// timeout bounds every wait, so that a test cannot hang.
const timeout = 30 * time.Second

// broker is a running `switchboard serve`.
type broker struct {
	*testbed.Command
	url, tcp string // tcp is "" without --tcp
}

// startBroker starts a broker.
func startBroker(t *testing.T, environ []string, flags ...string) broker {
	t.Helper()
	args := append([]string{"serve", "--http=127.0.0.1:0", "--tcp=off"}, flags...)
	p := testbed.RunCommand(t, environ, binary, args...)
	listening := p.Await("listening")
	tcp, _ := listening["tcp"].(string)
	return broker{p, "http://" + listening["http"].(string), tcp}
}

// cli runs a command against the broker.
func (b broker) cli(t *testing.T, args ...string) testbed.Result {
	t.Helper()
	return testbed.Execute(t, []string{"SWITCHBOARD_URL=" + b.url}, binary, args...)
}

// ok runs a command that must succeed, and returns its output.
func (b broker) ok(t *testing.T, args ...string) string {
	t.Helper()
	r := b.cli(t, args...)
	if r.Code != 0 || r.Stderr != "" {
		t.Fatalf("%v: %+v", args, r)
	}
	return r.Stdout
}

// asJSON runs a command with --json that must succeed, and decodes its output.
func asJSON[T any](t *testing.T, b broker, args ...string) (v T) {
	t.Helper()
	out := b.ok(t, append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("%v: %v in %s", args, err, out)
	}
	return v
}

// lines is a running command that prints lines.
type lines struct {
	cmd   *exec.Cmd
	lines chan string
	ended chan struct{}

	mu     sync.Mutex // guards stderr
	stderr bytes.Buffer
}

// Write implements io.Writer for the standard error.
func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stderr.Write(text)
}

func (l *lines) errors() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stderr.String()
}

// follow starts a command, which is killed at the end of the test.
func follow(t *testing.T, environ []string, args ...string) *lines {
	t.Helper()
	return feed(t, environ, "", args...)
}

// feed is like follow, with a text as the standard input.
func feed(t *testing.T, environ []string, stdin string, args ...string) *lines {
	t.Helper()
	l := &lines{cmd: exec.Command(binary, args...), lines: make(chan string, 10_000), ended: make(chan struct{})}
	l.cmd.Env, l.cmd.Stderr, l.cmd.Stdin = environ, l, strings.NewReader(stdin)
	out, err := l.cmd.StdoutPipe()
	if err == nil {
		err = l.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			l.lines <- scanner.Text()
		}
		_ = l.cmd.Wait()
		close(l.ended)
	}()
	t.Cleanup(func() { _ = l.cmd.Process.Kill(); <-l.ended })
	return l
}

// next returns the next line.
func (l *lines) next(t *testing.T) string {
	t.Helper()
	select {
	case line := <-l.lines:
		return line
	case <-l.ended:
		t.Fatalf("the command ended: %s", l.errors())
	case <-time.After(timeout):
		t.Fatalf("no further line: %s", l.errors())
	}
	return ""
}

// interrupt ends the command by SIGINT and returns its exit code.
func (l *lines) interrupt(t *testing.T) int {
	t.Helper()
	if err := l.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	return l.wait(t)
}

func (l *lines) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-l.ended:
	case <-time.After(timeout):
		t.Fatalf("the command does not end: %s", l.errors())
	}
	return l.cmd.ProcessState.ExitCode()
}

// TestUsage: wrong command lines end with 2, and say where the help is.
func TestUsage(t *testing.T) {
	for line, want := range map[string]string{
		"bogus":                           `unknown command "bogus"`,
		"pus":                             "did you mean push?",
		"rooms":                           "did you mean room?",
		"kick alice":                      "did you mean disconnect?",
		"state gte news":                  `unknown command "gte"; did you mean get?`,
		"push --clinet a 1":               "unknown flag: --clinet; did you mean --client?",
		"serve --htpp x":                  "unknown flag: --htpp; did you mean --http?",
		"who --profile x":                 `there is no profile "x"`,
		"push":                            "missing: a channel",
		"push news":                       "missing: data",
		"push news {":                     "looks like JSON and is not",
		"push news 1 2":                   "too many arguments",
		"push --user a b c":               "is too much",
		"push news --set a":               "want FIELD=VALUE",
		"push news --add a=x":             "want a whole number",
		"push news --if a=-1":             "want the id of a field",
		"push --bogus":                    "unknown flag: --bogus",
		"push news 1 --color red":         "--color: want",
		"push news 1 --url ws://x":        "is not the address of a broker",
		"push news 1 --ttl x":             "invalid argument",
		"tail":                            "missing: a channel",
		"tail news --last 1 --after 5":    "only one of them",
		"who alice --channel news":        "only one of them",
		"serve --bogus":                   "unknown flag: --bogus",
		"serve --http x extra":            "belongs to no flag",
		"janitor":                         "--redis: missing",
		"janitor check":                   "--redis: missing",
		"who --api-key a --key-file /dev": "only one of them",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			r := testbed.Execute(t, nil, binary, strings.Fields(line)...)
			if r.Code != exitUsage || r.Stdout != "" || !strings.Contains(r.Stderr, want) || !strings.Contains(r.Stderr, "--help.\n") {
				t.Errorf("%+v, want %q", r, want)
			}
		})
	}
}

// TestUsageNamesTheCommand checks that a wrong command line points to the help of its command.
func TestUsageNamesTheCommand(t *testing.T) {
	for line, command := range map[string]string{
		"push news 1 2":       "switchboard push",
		"push --clinet a 1":   "switchboard push",
		"state gte news":      "switchboard state",
		"room get":            "switchboard room get",
		"tail --last 1 a --x": "switchboard tail",
		"bogus":               "switchboard",
	} {
		r := testbed.Execute(t, nil, binary, strings.Fields(line)...)
		if !strings.HasPrefix(r.Stderr, command+": ") || !strings.Contains(r.Stderr, "Try "+command+" --help.\n") {
			t.Errorf("%s: %q", line, r.Stderr)
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"help"}, {"help", "push"}, {"push", "--help"}, {"serve", "--help"}, {"janitor", "check", "--help"}} {
		if r := testbed.Execute(t, nil, binary, args...); r.Code != 0 || !strings.Contains(r.Stdout, "Usage:") || r.Stderr != "" {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if r := testbed.Execute(t, nil, binary, "serve", "--help"); !strings.Contains(r.Stdout, "Usage: switchboard serve [flags]") {
		t.Errorf("%s", r.Stdout)
	}
	for _, args := range [][]string{{"--version"}, {"serve", "--version"}, {"janitor", "--version"}} {
		if r := testbed.Execute(t, nil, binary, args...); r.Code != 0 || !strings.HasPrefix(r.Stdout, "switchboard ") || strings.Count(r.Stdout, "\n") != 1 {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

// TestUnreachable: without a broker the exit code is 6, and the error says what to do.
func TestUnreachable(t *testing.T) {
	environ := []string{"SWITCHBOARD_URL=http://127.0.0.1:1"}
	r := testbed.Execute(t, environ, binary, "who", "--retry-for=0")
	if r.Code != exitUnavailable || !strings.Contains(r.Stderr, "cannot reach http://127.0.0.1:1") || !strings.Contains(r.Stderr, "Is a broker running") {
		t.Errorf("%+v", r)
	}
	r = testbed.Execute(t, environ, binary, "who", "--retry-for=0", "--json")
	var answer struct {
		Error struct{ Code, Message string }
		Exit  int
	}
	if err := json.Unmarshal([]byte(r.Stderr), &answer); err != nil || answer.Exit != exitUnavailable || answer.Error.Code != "unavailable" {
		t.Errorf("%+v (%v)", r, err)
	}
}
