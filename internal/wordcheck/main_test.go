package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	comment := func(mark string, columns int) string {
		return mark + strings.Repeat("x", columns-len(mark))
	}
	tests := []struct {
		name, path, text string
		want             []string // beginnings of the output lines
	}{
		{"plain text", "a.go", "// Bind returns the session.\npackage a\n", nil},
		{"line number", "dir/a.go", "package a\n\n// whoever calls\n", []string{`dir/a.go:3: "whoever": write name the caller`}},
		{"upper case", "a.md", "Nobody reads.", []string{`a.md:1: "Nobody"`}},
		{"two rules in a line", "a.md", "he asks somebody", []string{`a.md:1: "somebody"`, `a.md:1: "he"`}},
		{"one word twice", "a.md", "his and his", []string{`a.md:1: "his"`, `a.md:1: "his"`}},
		{"part of a longer word", "a.md", "the crowdfunding of this chef", nil},
		{"string literal", "a.go", `	t.Fatal("it is told")`, []string{`a.go:1: "is told"`}},
		{"camel case", "a.go", "func newDoors()", []string{`a.go:1: "Doors"`}},
		{"snake case", "a.lua", "local crowd_size", []string{`a.lua:1: "crowd"`}},
		{"file name", "b/crowd_test.go", "", []string{`b/crowd_test.go: "crowd" in the file name`}},
		{"directory name", "crowd/a.go", "", nil},

		{"anyone is allowed", "a.md", "It does not tell anyone.", nil},
		{"access value", "a.md", "Use `nobody` or \"nobody\".", nil},
		{"access value in YAML", "a.yaml", "subscribe: nobody", nil},
		{"access value beside a finding", "a.md", "With `nobody`, nobody reads.", []string{`a.md:1: "nobody"`}},
		{"behind a proxy", "a.md", "brokers behind a proxy", nil},
		{"behind the cursor", "a.md", "messages behind the cursor", nil},
		{"lag", "a.md", "the replica falls behind", nil},
		{"behind for time", "a.md", "the call behind it", []string{`a.md:1: "behind"`}},

		{"100 columns", "a.go", comment("// ", 100), nil},
		{"101 columns", "a.go", comment("// ", 101), []string{"a.go:1: comment of 101 columns: at most 100"}},
		{"100 columns with indentation", "a.go", comment("\t// ", 100), nil},
		{"101 columns with indentation", "a.go", comment("\t// ", 101), []string{"a.go:1: comment of 101 columns"}},
		{"100 characters of two bytes", "a.go", "// " + strings.Repeat("é", 97), nil},
		{"long line of code", "a.go", comment("x = ", 200), nil},
		{"long code with a comment", "a.go", comment("x = y // ", 101), nil},
		{"directive", "a.go", comment("//go:embed ", 101), nil},
		{"Lua", "a.lua", comment("-- ", 101), []string{"a.lua:1: comment"}},
		{"YAML", "a.yaml", comment("# ", 101), []string{"a.yaml:1: comment"}},
		{"JavaScript", "a.js", comment("// ", 101), []string{"a.js:1: comment"}},
		{"Makefile", "Makefile", comment("# ", 101), []string{"Makefile:1: comment"}},
		{"Markdown has no limit", "a.md", comment("# ", 101), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			found, err := check(&out, test.path, strings.NewReader(test.text))
			if err != nil {
				t.Fatal(err)
			}
			got := slices.Collect(strings.Lines(out.String()))
			if found != len(test.want) || !slices.EqualFunc(got, test.want, strings.HasPrefix) {
				t.Errorf("%d findings:\n%swant:\n%s", found, &out, strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	if out, err := exec.Command("git", "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for path, text := range map[string]string{
		".gitignore": "ignored.go\n", "ignored.go": "he", "a.go": "he", "é.go": "he", "binary": "he", "Makefile": "", ".ci/run": "",
		"dir/a.lua": "", "dir/testdata/a.go": "he", "node_modules/a.js": "he", "internal/wordcheck/a.go": "he", "mytestdata/a.go": "",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct{ args, want []string }{
		{nil, []string{".ci/run", "Makefile", "a.go", "dir/a.lua", "mytestdata/a.go", "é.go"}},
		{[]string{"dir"}, []string{"dir/a.lua"}},
		{[]string{"a.go", "dir"}, []string{"a.go", "dir/a.lua"}},
	}
	for _, test := range tests {
		if got, err := files(test.args); err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%v: %v (%v), want %v", test.args, got, err, test.want)
		}
	}
	if list, err := files([]string{"missing"}); err == nil {
		t.Errorf("an argument without a file: %v, want an error", list)
	}
	var out strings.Builder
	if found, err := run(&out, nil); err != nil || found != 2 {
		t.Errorf("run found %d (%v), want 2:\n%s", found, err, &out)
	}
}
