package ci

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// list runs go list with these build tags and returns what the format prints for each package.
func list(t *testing.T, tags, format string) map[string][]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-tags", tags, "-f", "{{.ImportPath}} "+format, "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	byPackage := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		byPackage[fields[0]] = fields[1:]
	}
	return byPackage
}

var (
	testFiles   = "{{range .TestGoFiles}}{{.}} {{end}}{{range .XTestGoFiles}}{{.}} {{end}}"
	declaration = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
)

// TestLong: make test-long runs each test that make test leaves out, and each one that does more in
// it.
func TestLong(t *testing.T) {
	out, text, err := script(t, nil, "long")
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	long := map[string][]string{}
	for line := range strings.Lines(out) {
		name, tests, _ := strings.Cut(strings.TrimSpace(line), ": ")
		long[name] = strings.Fields(tests)
	}
	quick, found := list(t, "", testFiles), 0
	for name, files := range list(t, "long", testFiles) {
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(root, strings.TrimPrefix(name, "switchboard"), file))
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(quick[name], file) && !strings.Contains(string(text), "\n\t\"switchboard/internal/longtest\"\n") {
				continue
			}
			for _, test := range declaration.FindAllStringSubmatch(string(text), -1) {
				if found++; test[1] != "TestMain" && !slices.Contains(long[name], test[1]) {
					t.Errorf("%s of %s, in %s, is in no run", test[1], name, file)
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("%d tests are long", found)
	}
}

// TestTags: no test is in a file that make test, make test-long and make test-deploy leave out, but
// for those of another operating system.
func TestTags(t *testing.T) {
	for name, files := range list(t, "long,deploy", "{{range .IgnoredGoFiles}}{{.}} {{end}}") {
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") && !strings.HasSuffix(file, "_linux_test.go") {
				t.Errorf("%s of %s is in no run", file, name)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(root, ".ci/run"))
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"test", "test-long", "test-deploy"} {
		if !slices.Contains(strings.Split(string(text), "\n"), "make "+target) {
			t.Errorf(".ci/run does not make %s", target)
		}
	}
}

// TestLongRun: make test-long runs the long tests of the packages that can be tested here, and no
// others. make test names what it leaves to make test-long.
func TestLongRun(t *testing.T) {
	path := "PATH=" + fakeGo(t, "switchboard/internal/linear", "switchboard/internal/wire")
	out, _, err := script(t, []string{"CI=", path}, "test-long")
	if err != nil || !strings.Contains(out, " -tags long ") || !strings.Contains(out, "|TestFaultyStores|") ||
		strings.Contains(out, "TestHolds") || !strings.Contains(out, " switchboard/internal/linear\n") {
		t.Errorf("%v: %q", err, out)
	}
	out, _, err = script(t, []string{"CI=", path}, "test")
	if err != nil || !strings.Contains(out, "make test-long runs:\n") || !strings.Contains(out, "switchboard/internal/e2e: TestChatTutorial ") {
		t.Errorf("%v: %q", err, out)
	}
}
