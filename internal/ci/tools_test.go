package ci

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// lean returns a directory with only these programs.
func lean(t *testing.T, programs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range programs {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// script runs a script of .ci and returns its output and its error output.
func script(t *testing.T, environ []string, name string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, ".ci", name), args...)
	var out, errors bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), environ...), &out, &errors
	err = cmd.Run()
	return out.String(), errors.String(), err
}

// basics are what the scripts themselves need.
var basics = []string{"bash", "cat", "cut", "dirname", "env", "getconf", "git", "go", "grep", "mktemp", "rm", "sed", "sort", "uname", "wc"}

// leftOut returns the packages that .ci/packages leaves out, by program.
func leftOut(t *testing.T, environ ...string) map[string][]string {
	t.Helper()
	_, text, err := script(t, environ, "packages", "test")
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	left := map[string][]string{}
	for line := range strings.Lines(text) {
		program, packages, found := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "without "), ":")
		if !found || packages == "" {
			t.Errorf("%q", line)
		}
		left[program] = strings.Fields(packages)
	}
	return left
}

// TestPackages: a package is left out if a program is missing that it needs.
func TestPackages(t *testing.T) {
	if left := leftOut(t, "PATH="+lean(t, append(basics, "redis-server", "node", "npm", "curl", "openssl", "python3", "php", "ruby", "javac", "nc")...)); len(left) != 2 ||
		!slices.Contains(left["chromium"], "switchboard/internal/e2e") || !slices.Equal(left["promtool"], []string{"switchboard/configs"}) {
		t.Errorf("without chromium and promtool: %v", left)
	}
	if left := leftOut(t, "PATH="+lean(t, basics...)); !slices.Contains(left["redis-server"], "switchboard/registry") ||
		slices.Contains(left["redis-server"], "switchboard/client/room") {
		t.Errorf("without redis-server: %v", left["redis-server"])
	}
}

// fakeGo returns a directory with basics and a fake go, which lists these packages, and another
// one that needs each of the missing programs. As go test it prints its arguments and exits with
// $result.
func fakeGo(t *testing.T, packages ...string) (path string) {
	t.Helper()
	path = lean(t, slices.DeleteFunc(slices.Clone(basics), func(name string) bool { return name == "go" })...)
	fake := "#!/usr/bin/env bash\ncase $*\" \" in 'list ./... ') printf '%s\\n' " + strings.Join(packages, " ") +
		" ;; list*) echo switchboard/internal/left ;; test*) echo \"$@\"; exit ${result:-0} ;; esac\n"
	if err := os.WriteFile(filepath.Join(path, "go"), []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTestPolicy: make test names what it leaves out after all tests have passed. That is a
// failure only in CI, and a test that fails is one anywhere.
func TestTestPolicy(t *testing.T) {
	path := fakeGo(t, "switchboard/internal/x")
	for _, tt := range []struct {
		environ []string
		ok      bool
		listed  bool
	}{
		{[]string{"CI="}, true, true},
		{[]string{"CI=true"}, false, true},
		{[]string{"CI=", "result=1"}, false, false},
	} {
		out, _, err := script(t, append(tt.environ, "PATH="+path), "test")
		if (err == nil) != tt.ok || strings.Contains(out, "without chromium: ") != tt.listed {
			t.Errorf("%v: %v, %q", tt.environ, err, out)
		}
	}
}

// TestLargeTestsBegin: make test gives the packages with the largest tests to go test first.
func TestLargeTestsBegin(t *testing.T) {
	path := fakeGo(t, "switchboard", "switchboard/internal/slots", "switchboard/broker", "switchboard/queue", "switchboard/x")
	out, _, err := script(t, []string{"CI=", "PATH=" + path}, "test")
	want := " switchboard/broker switchboard/queue switchboard switchboard/internal/slots switchboard/x\n"
	if err != nil || !strings.Contains(out, want) {
		t.Errorf("%v: %q, want %q", err, out, want)
	}
}

// runs matches a program that a test runs.
var runs = regexp.MustCompile(`(?:Command\(|CommandContext\([\w.()]+, |LookPath\()"([\w-]+)"`)

// TestTable: .ci/tools has the package of each test that runs one of its programs.
func TestTable(t *testing.T) {
	left := leftOut(t, "PATH="+lean(t, basics...))
	found := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "deploy" || d.Name() == "bench") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		dir, _ := filepath.Rel(root, filepath.Dir(path))
		for _, m := range runs.FindAllStringSubmatch(string(text), -1) {
			if needs, ok := left[m[1]]; ok {
				if found++; !slices.Contains(needs, "switchboard/"+filepath.ToSlash(dir)) {
					t.Errorf("%s runs %s: its package is not in .ci/tools", path, m[1])
				}
			}
		}
		return err
	})
	if err != nil || found < 10 {
		t.Errorf("%d tests run programs, %v", found, err)
	}
}
