//go:build long

package samples

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var update = flag.Bool("update", false, "write the programs to the page")

// quoted matches a block of the page that shows a program: its first lines name the file.
var quoted = regexp.MustCompile("(?m)^```[a-z]+\n((?:<\\?php\n)?(?:#|//) (\\w+\\.\\w+)\n(?:.*\n)*?)```$")

// TestPage: the pages show the whole text of all programs.
func TestPage(t *testing.T) {
	var files []string
	for _, l := range languages {
		files = append(files, l.push, l.issueToken, l.webhook)
	}
	checkPage(t, "../../docs/guides/languages.md", files)
	checkPage(t, "../../docs/guides/generate.md", []string{"push.ts"})
}

func checkPage(t *testing.T, page string, files []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	text = quoted.ReplaceAllFunc(text, func(block []byte) []byte {
		m := quoted.FindSubmatch(block)
		file := string(m[2])
		shown[file] = string(m[1])
		program, err := os.ReadFile(filepath.Join(samples, file))
		if err != nil {
			t.Error(err)
		}
		start := len(block) - len(m[1]) - len("```")
		return append(append(append([]byte(nil), block[:start]...), program...), "```"...)
	})
	if *update {
		if err := os.WriteFile(page, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, file := range files {
		program, err := os.ReadFile(filepath.Join(samples, file))
		if err != nil {
			t.Fatal(err)
		}
		if shown[file] != string(program) {
			t.Errorf("%s does not show %s as it is: go test -tags long ./internal/samples -run TestPage -update", page, file)
		}
		delete(shown, file)
	}
	if len(shown) > 0 {
		t.Errorf("no test runs %v", shown)
	}
}
