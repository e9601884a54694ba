package snippets

import (
	"bufio"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"switchboard/internal/await"
	"switchboard/internal/freeport"
	"switchboard/internal/procgroup"
)

//go:embed testdata/preamble.sh
var preamble string

// A shell runs the blocks of one page in a directory that looks like a clone of the repository.
type shell struct {
	t     *testing.T
	page  string
	dir   string
	ports map[string]string // port of the documentation → free port
	stdin *os.File
	marks *bufio.Scanner // lines that say how a step ended
	steps int
	last  string   // output of the last command
	lines []string // files with what clients have received
	own   []string // files that the test has made

	refused bool // the page shows a refusal as the answer of the block
}

// docPort matches the ports of the documentation.
var docPort = regexp.MustCompile(`\b(8080|8081|8082|8083|7070|7071|7072|7073|6379|8000|3000|9000)\b`)

func (s *shell) mapped(code string) string {
	code = strings.ReplaceAll(code, "--connections 1000 --rate 200 --duration 30s", "--connections 10 --rate 20 --duration 1s")
	return docPort.ReplaceAllStringFunc(code, func(port string) string {
		if s.ports[port] == "" {
			free, err := freeport.Find()
			if err != nil {
				s.t.Fatal(err)
			}
			s.ports[port] = strconv.Itoa(free)
		}
		return s.ports[port]
	})
}

// newShell starts the shell of a page. It ends with the test, and so do its children.
func newShell(ctx context.Context, t *testing.T, page string) *shell {
	t.Helper()
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	s := &shell{t: t, page: page, dir: t.TempDir(), ports: map[string]string{}}
	for link, target := range map[string]string{
		"bin": programs, "configs": repository + "/configs", "client": repository + "/client", "deploy": repository + "/deploy", ".steps": t.TempDir(),
	} {
		if err := os.Symlink(target, filepath.Join(s.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	in, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	marks, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.stdin, s.marks = stdin, bufio.NewScanner(marks)
	cmd := exec.CommandContext(ctx, "bash")
	cmd.Dir, cmd.Stdin, cmd.ExtraFiles = s.dir, in, []*os.File{out}
	procgroup.Set(cmd)
	cmd.Cancel = func() error { return procgroup.Kill(cmd.Process) } // with the servers
	cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "HOME="+s.dir, "repository="+repository,
		s.mapped("http_port=8080"), s.mapped("SWITCHBOARD_HTTP=127.0.0.1:8080"), s.mapped("SWITCHBOARD_TCP=127.0.0.1:7070"),
		s.mapped("SWITCHBOARD_URL=http://127.0.0.1:8080"), "SWITCHBOARD_LOG_FORMAT=json")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = in.Close(), out.Close()
	t.Cleanup(func() {
		_ = procgroup.Kill(cmd.Process)
		_, _, _ = cmd.Wait(), stdin.Close(), marks.Close()
	})
	s.step(preamble)
	return s
}

// step runs a part of a script, and returns its output and what failed.
func (s *shell) step(code string) (output, failed string) {
	s.steps++
	name := fmt.Sprintf(".steps/%d", s.steps)
	if err := os.WriteFile(filepath.Join(s.dir, name+".sh"), []byte(code), 0o600); err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprintf(s.stdin, "source %[1]s.sh >%[1]s.out 2>%[1]s.err </dev/null; echo done >&3\n", name)
	for {
		if !s.marks.Scan() {
			s.t.Fatalf("%s: the shell has ended, or was ended after %v, in\n%s", s.page, 2*patience, code)
		}
		if s.marks.Text() == "done" {
			break
		}
		failed += s.marks.Text() + "\n"
	}
	out, _ := os.ReadFile(filepath.Join(s.dir, name+".out"))
	if log, _ := os.ReadFile(filepath.Join(s.dir, name+".err")); failed != "" {
		failed += string(log)
	}
	return string(out), failed
}

// server matches a command that runs until it is ended. Its group is a background mark.
var server = regexp.MustCompile(`^((?:[A-Z_]+=\S+ )*(?:bin/)?(?:broker|switchboard serve|janitor|redis-server|node|python3 -m http\.server)\b(?: +[^&|>#]*?)?)(?: *(&))?(?:\s+#.*)?$`)

// once matches commands of the same programs that end by themselves.
var once = regexp.MustCompile(`^(bin/)?(broker|janitor) (key|check|--help|--version|--once|.*--dead-letters)|^node (-e|--check|--version)`)

// portOf returns the port on which a server listens: that of a flag, or that of the documentation.
func portOf(server string) string {
	if m := regexp.MustCompile(`--(?:http|port)[ =](?:[\w.]+:)?(\d+)`).FindStringSubmatch(server); m != nil {
		return m[1]
	}
	switch {
	case strings.Contains(server, "janitor"):
		return ""
	case strings.Contains(server, "http.server"):
		return "8000"
	case strings.Contains(server, "node"):
		return "9000"
	case strings.Contains(server, "redis-server"):
		return "6379"
	}
	return "8080"
}

// follower matches a command that prints what happens until it is ended.
var follower = regexp.MustCompile(`^((?:bin/)?switchboard (?:tail|requests) [^#]*?)(?: *(&))?(?:\s+#.*)?$`)

// started returns a line that starts a server and waits until it accepts connections, or that
// starts a follower. Other lines are returned as they are.
func started(line string) string {
	if m := follower.FindStringSubmatch(line); m != nil {
		return "{ " + m[1] + ` || echo "failed: a follower" >&3; } &`
	}
	m := server.FindStringSubmatch(line)
	if m == nil || once.MatchString(line) {
		return line
	}
	if port := portOf(m[1]); port != "" {
		return "terminal " + port + " env " + strings.TrimSpace(m[1])
	}
	return "env " + strings.TrimSpace(m[1]) + " >>servers.log 2>&1 &"
}

// run runs a block of sh.
func (s *shell) run(b block) {
	s.t.Helper()
	var script, shown, typed []string
	flush := func() {
		if len(script) == 0 {
			return
		}
		s.runPart(b, script, shown, typed)
		script, shown, typed = nil, nil, nil
	}
	prompts := strings.HasPrefix(b.code, "$ ")
	for line := range strings.SplitSeq(strings.TrimSuffix(b.code, "\n"), "\n") {
		switch command, prompted := strings.CutPrefix(line, "$ "); {
		case strings.HasPrefix(line, `{"`) && isClient(script):
			typed = append(typed, line)
		case strings.HasPrefix(line, `{"`), prompts && !prompted:
			shown = append(shown, line)
		default:
			if len(shown)+len(typed) > 0 || prompted {
				flush()
			}
			script = append(script, started(command))
		}
	}
	flush()
}

// isClient reports whether the last line of a script is a client whose user types messages.
func isClient(script []string) bool {
	return len(script) > 0 && regexp.MustCompile(`\bnc (-\w+ )?\S+ \d+|\bcurl -N `).MatchString(script[len(script)-1])
}

// runPart runs a script whose last command has the shown answer, or reads the typed lines.
func (s *shell) runPart(b block, script, shown, typed []string) {
	s.t.Helper()
	if isClient(script) {
		last := len(script) - 1
		name := fmt.Sprintf(".steps/client%d", s.steps)
		s.lines = append(s.lines, name)
		input := ""
		for _, line := range typed {
			input += fmt.Sprintf("printf '%%s\\n' %s; ", quote(line))
		}
		script[last] = fmt.Sprintf("{ %ssleep 1000; } | %s >%s 2>&1 &", input, strings.Replace(script[last], "cat)", "cat;)", 1), name)
	}
	body, last := splitLast(script)
	output, failed := s.step(s.mapped(body))
	if failed == "" {
		s.last, failed = s.step(s.mapped(last))
	}
	if strings.Contains(output+s.last, `{"error":`) && !s.refused && !strings.Contains(strings.Join(shown, ""), `"error"`) {
		failed += "the broker refuses: " + output + s.last
	}
	if failed != "" {
		s.t.Errorf("%s:%d: %s", b.page, b.line, failed)
		return
	}
	answers := strings.Count(strings.Join(script, "\n"), "curl -N ") // an event of each stream
	for _, line := range typed {
		if !strings.Contains(line, `"type":"ack"`) && !strings.Contains(line, `"type":"pong"`) {
			answers++
		}
	}
	s.awaitLines(b, answers)
	if len(shown) > 0 {
		s.answer(block{page: b.page, line: b.line, code: strings.Join(shown, "\n")})
	}
}

// splitLast separates the last command of a script, which may have several lines.
func splitLast(script []string) (body, last string) {
	i := len(script) - 1
	for i > 0 && (strings.HasSuffix(script[i-1], "\\") || strings.Count(strings.Join(script[i:], "\n"), "'")%2 == 1 || strings.HasPrefix(script[i], " ") || strings.HasPrefix(script[i], "}")) {
		i--
	}
	return strings.Join(script[:i], "\n") + "\n", strings.Join(script[i:], "\n") + "\n"
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// answer compares the output of the last command with the one that the page shows.
func (s *shell) answer(b block) {
	s.t.Helper()
	if !strings.HasPrefix(b.code, "{") {
		shown, got := strings.Split(strings.TrimSpace(b.code), "\n"), strings.Split(strings.TrimSpace(s.last), "\n")
		for i, line := range shown {
			if line != "…" && (i >= len(got) && shown[0] != "…" || !strings.Contains(s.last, strings.Fields(line)[0])) {
				s.t.Errorf("%s:%d: the page shows %q, the output is\n%s", b.page, b.line, line, s.last)
			}
		}
		return
	}
	if d := make(shape).compare(b.code, s.last); d != "" {
		s.t.Errorf("%s:%d: %s\n%s", b.page, b.line, d, s.last)
	}
}

// received waits until the clients of the page have received what the block shows.
func (s *shell) received(ctx context.Context, b block) {
	s.t.Helper()
	for line := range strings.SplitSeq(strings.TrimSpace(b.code), "\n") {
		s.await(ctx, func(text string) bool {
			for got := range strings.SplitSeq(text, "\n") {
				if got != "" && make(shape).compare(line, got) == "" {
					return true
				}
			}
			return false
		}, fmt.Sprintf("%s:%d: no client has received %s", b.page, b.line, line))
	}
}

func (s *shell) awaitLines(b block, n int) {
	if n > 0 {
		s.await(s.t.Context(), func(text string) bool { return strings.Count(text, "\n") >= n }, fmt.Sprintf("%s:%d: %d answers are missing", b.page, b.line, n))
	}
}

// await waits until the output of the clients meets a condition.
func (s *shell) await(ctx context.Context, met func(text string) bool, problem string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var all string
	err := await.Until(ctx, problem, func() bool {
		all = ""
		for _, name := range s.lines {
			text, _ := os.ReadFile(filepath.Join(s.dir, name))
			all += string(text)
		}
		return met(all)
	})
	if err != nil {
		s.t.Fatalf("%v; they have received\n%s", err, all)
	}
}
