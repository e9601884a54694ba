package snippets

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTroubleshooting: docs/troubleshooting.md has a row for each code of docs/errors.md, and every
// text that it quotes is one of the programs.
func TestTroubleshooting(t *testing.T) {
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	page := read("docs/troubleshooting.md")
	codes := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| \\d").FindAllStringSubmatch(read("docs/errors.md"), -1)
	for _, m := range codes {
		if !regexp.MustCompile("(?m)^\\| `" + m[1] + "`").MatchString(page) {
			t.Errorf("no row begins with %s", m[1])
		}
	}
	if len(codes) < 20 {
		t.Errorf("docs/errors.md has only %d codes", len(codes))
	}
	var sources strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "node_modules" || d.Name() == "dist") {
			return filepath.SkipDir
		}
		if err == nil && filepath.Ext(path) == ".go" && !strings.HasSuffix(path, "_test.go") {
			text, err := os.ReadFile(path)
			sources.Write(text)
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("`\"([^\"`]+)\"`").FindAllStringSubmatch(page, -1) {
		for part := range strings.SplitSeq(m[1], "…") {
			if m[1] != "quotes" && !strings.Contains(sources.String(), part) {
				t.Errorf("no program prints %q", part)
			}
		}
	}
}
