package snippets

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// helper matches a function that makes metrics: the text before and after their names.
	helper = regexp.MustCompile(`Name: "(switchboard_\w*)" \+ name(?: \+ "(\w+)")?`)
	// named matches a call of such a function.
	named = regexp.MustCompile(`\b(?:counters?|byRound|gauge)\("([a-z_]+)", "`)
	// whole matches a whole name.
	whole = regexp.MustCompile(`"(switchboard_[a-z_]+[a-z])"`)
	// described matches a row of the page.
	described = regexp.MustCompile("(?m)^\\| `(switchboard_\\w+)` \\|")
)

// TestMetricsPage compares docs/metrics.md with the names of the metrics in the sources.
func TestMetricsPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	inSources := map[string]bool{}
	for _, dir := range []string{"broker", "events", "janitor", "kit", "cmd", "internal/latency", "internal/redispipe"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "cmd/demo") {
				return err
			}
			text, err := os.ReadFile(path)
			source := string(text)
			if m := helper.FindStringSubmatch(source); m != nil {
				for _, name := range named.FindAllStringSubmatch(source, -1) {
					inSources[m[1]+name[1]+m[2]] = true
				}
			}
			for _, m := range whole.FindAllStringSubmatch(source, -1) {
				inSources[m[1]] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range described.FindAllStringSubmatch(string(page), -1) {
		if !inSources[m[1]] {
			t.Errorf("docs/metrics.md describes %s, which does not exist", m[1])
		}
		delete(inSources, m[1])
	}
	for name := range inSources {
		t.Errorf("docs/metrics.md has no %s", name)
	}
}
