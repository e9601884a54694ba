package js_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"switchboard/internal/apigen"
)

var update = flag.Bool("update", false, "write the generated modules, and the file of their exports")

// TestGenerated compares the generated modules with the OpenAPI document.
func TestGenerated(t *testing.T) {
	t.Parallel()
	modules, err := apigen.TypeScript()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for path, text := range modules {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config, err := os.ReadFile(".prettierrc.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".prettierrc.json"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "node_modules/.bin/prettier", "--write", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for path := range modules {
		text, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		compareFile(t, path, string(text))
	}
	for _, pattern := range []string{"src/*/*.gen.ts", "test/*.gen.ts"} {
		sources, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range sources {
			if modules[path] == "" {
				t.Errorf("%s is no longer generated", path)
			}
		}
	}
}

// compareFile compares a text with a file, or writes it.
func compareFile(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := func(text, without, mark string) {
		known := strings.Split(without, "\n")
		for line := range strings.SplitSeq(text, "\n") {
			if !slices.Contains(known, line) {
				t.Log(mark, line)
			}
		}
	}
	if string(got) != want {
		lines(string(got), want, "-")
		lines(want, string(got), "+")
		t.Errorf("%s is not current: run `go generate ./internal/apigen` if that is meant", path)
	}
}

// compareSurface compares the exported declarations of the kit and of the entry for backends with a
// file, so that a change of the OpenAPI document changes no program unseen. The modules in which
// they stand, and their order, do not count.
func compareSurface(t *testing.T, built map[string][]byte) {
	t.Helper()
	var lines []string
	for path, text := range built {
		if strings.HasSuffix(path, ".d.ts") && strings.Contains(path, "/") {
			lines = append(lines, exports(string(text))...)
		}
	}
	slices.Sort(lines)
	compareFile(t, "test/surface.txt", strings.Join(slices.Compact(lines), "\n")+"\n")
}

var (
	comments = regexp.MustCompile(`(?s)/\*.*?\*/`)
	heads    = regexp.MustCompile(`(?m)^export (?:declare )?(?:class|interface|type|function|const) [^{=(:;]*`)
)

// exports returns a line for each declaration of a module, and for each of its members.
func exports(text string) (lines []string) {
	text = comments.ReplaceAllString(text, "")
	starts := heads.FindAllStringIndex(text, -1)
	for i, at := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		name := strings.Join(strings.Fields(text[at[0]:at[1]]), " ")
		body := strings.Join(strings.Fields(text[at[1]:end]), " ")
		inner, isBlock := strings.CutPrefix(body, "{")
		if !isBlock {
			lines = append(lines, strings.TrimSpace(name+" "+body))
			continue
		}
		lines = append(lines, name)
		for _, member := range members(strings.TrimSuffix(strings.TrimSpace(inner), "}")) {
			lines = append(lines, name+": "+member)
		}
	}
	return lines
}

// members splits a text at its semicolons that are in no braces.
func members(text string) (list []string) {
	depth, start := 0, 0
	for i, c := range text {
		switch c {
		case '{':
			depth++
		case '}':
			depth--
		case ';':
			if depth == 0 {
				list, start = append(list, strings.TrimSpace(text[start:i])), i+1
			}
		}
	}
	return list
}
