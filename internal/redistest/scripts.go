package redistest

import (
	"embed"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

var (
	luaShebang = regexp.MustCompile(`^#!lua( flags=(allow-oom|no-writes))?$`)
	luaInput   = regexp.MustCompile(`(?:KEYS|ARGV)\[(?:\w\+)?\w+\]`) // a script over many targets has KEYS[k+1], ARGV[7+i]
)

// CheckScripts checks the scripts lua/*.lua of files. The header of a script must document exactly
// the inputs that the body uses, the result and the cost. Redis must be able to compile the script.
// A file that does not begin with #! is a piece of other scripts, for which the same is required.
func CheckScripts(t *testing.T, client redis.UniversalClient, files embed.FS) {
	entries, err := files.ReadDir("lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range entries {
		t.Run(file.Name(), func(t *testing.T) {
			source, err := files.ReadFile("lua/" + file.Name())
			if err != nil {
				t.Fatal(err)
			}
			script := string(source)
			if !strings.HasPrefix(script, "#!") {
				script = "#!lua\n" + script
			}
			checkHeader(t, script)
			if err := client.ScriptLoad(t.Context(), script).Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

func checkHeader(t *testing.T, source string) {
	lines := strings.Split(source, "\n")
	if !luaShebang.MatchString(lines[0]) {
		t.Errorf("first line %q", lines[0])
	}
	end := 1
	for strings.HasPrefix(lines[end], "-- ") {
		end++
	}
	header, body := lines[1:end], strings.Join(lines[end:], "\n")
	var documented []string
	used := luaInput.FindAllString(body, -1)
	for _, line := range header {
		name := luaInput.FindString(line)
		if name == "" || !strings.HasPrefix(line, "-- "+name+" ") {
			continue
		}
		documented = append(documented, name)
		if strings.HasPrefix(name, "KEYS") && strings.Contains(body, "ipairs(KEYS)") { // uses all keys
			used = append(used, name)
		}
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
}
