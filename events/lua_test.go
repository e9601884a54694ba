package events

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	luaShebang = regexp.MustCompile(`^#!lua( flags=(allow-oom|no-writes))?$`)
	luaInput   = regexp.MustCompile(`(?:KEYS|ARGV)\[\d+\]`)
)

// A script's header is its contract: it names all inputs that the body uses, and no other.
func TestScriptHeaders(t *testing.T) {
	client := server.Client(t)
	files, err := luaFiles.ReadDir("lua")
	ok(t, err)
	for _, file := range files {
		t.Run(file.Name(), func(t *testing.T) {
			source, err := luaFiles.ReadFile("lua/" + file.Name())
			ok(t, err)
			lines := strings.Split(string(source), "\n")
			if !luaShebang.MatchString(lines[0]) {
				t.Errorf("first line %q", lines[0])
			}
			end := 1
			for strings.HasPrefix(lines[end], "-- ") {
				end++
			}
			header, body := lines[1:end], strings.Join(lines[end:], "\n")
			var documented []string
			for _, line := range header {
				if name := luaInput.FindString(line); name != "" && strings.HasPrefix(line, "-- "+name+" ") {
					documented = append(documented, name)
				}
			}
			used := luaInput.FindAllString(body, -1)
			if strings.Contains(body, "ipairs(KEYS)") { // all of them
				used = append(used, luaInput.FindAllString(strings.Join(slices.DeleteFunc(slices.Clone(header),
					func(line string) bool { return !strings.HasPrefix(line, "-- KEYS") }), "\n"), -1)...)
			}
			slices.Sort(used)
			slices.Sort(documented)
			if used = slices.Compact(used); !slices.Equal(documented, used) {
				t.Errorf("the header documents %v, the body uses %v", documented, used)
			}
			for _, part := range []string{"-- returns ", "-- cost "} {
				if !slices.ContainsFunc(header, func(line string) bool { return strings.HasPrefix(line, part) }) {
					t.Errorf("the header has no line %q", part)
				}
			}
			if strings.Contains(body, "tostring(") {
				t.Error("tostring loses digits of large numbers")
			}
			ok(t, client.ScriptLoad(t.Context(), string(source)).Err())
		})
	}
}
