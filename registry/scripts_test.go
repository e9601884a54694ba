package registry

import (
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var parameter = regexp.MustCompile(`(KEYS|ARGV)\[\d+\]`)

// TestScripts checks the header of each script against its body, and loads it.
func TestScripts(t *testing.T) {
	client := single.Client(t)
	files, err := fs.Glob(luaFiles, "lua/*.lua")
	ok(t, err)
	if len(files) == 0 {
		t.Fatal("no scripts")
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			source, err := luaFiles.ReadFile(file)
			ok(t, err)
			header, body := splitScript(t, string(source))
			documented, used := parametersOf(header), parametersOf(body)
			if !slices.Equal(documented, used) {
				t.Errorf("documented are %v, used are %v", documented, used)
			}
			for _, line := range []string{"-- returns ", "-- cost "} {
				if !strings.Contains(header, "\n"+line) {
					t.Errorf("the header has no line %q", line)
				}
			}
			if strings.Contains(body, "tostring(") {
				t.Error("tostring loses digits of large numbers")
			}
			ok(t, client.ScriptLoad(t.Context(), string(source)).Err())
		})
	}
}

// splitScript cuts behind the leading comments.
func splitScript(t *testing.T, source string) (header, body string) {
	t.Helper()
	if !strings.HasPrefix(source, "#!lua") {
		t.Fatal("without #!lua Redis lets a script touch two slots")
	}
	lines := strings.SplitAfter(source, "\n")
	n := 1
	for strings.HasPrefix(lines[n], "--") {
		n++
	}
	return strings.Join(lines[:n], ""), strings.Join(lines[n:], "")
}

func parametersOf(text string) []string {
	set := map[string]bool{}
	for _, p := range parameter.FindAllString(text, -1) {
		set[p] = true
	}
	return slices.Sorted(maps.Keys(set))
}
