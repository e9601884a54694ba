package testbed

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Output returns the output of a command, "" if it fails.
func Output(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// RedisVersion returns the version of redis-server, "" if it is unknown.
func RedisVersion() string {
	for word := range strings.FieldsSeq(Output("redis-server", "--version")) {
		if version, found := strings.CutPrefix(word, "v="); found {
			return version
		}
	}
	return ""
}

// Commit returns the short id of the commit, and whether files have changed, except for some.
func Commit(except ...string) string {
	id, args := Output("git", "rev-parse", "--short=12", "HEAD"), []string{"status", "--porcelain", "--untracked-files=no", "--"}
	for _, path := range except {
		args = append(args, ":!"+path)
	}
	if Output("git", args...) != "" {
		id += ", with changes"
	}
	return id
}

// Memory returns the memory of the machine in GiB, as text.
func Memory() string {
	var kib int
	text, err := os.ReadFile("/proc/meminfo")
	if err == nil {
		_, err = fmt.Sscanf(string(text), "MemTotal: %d kB", &kib)
	}
	if err != nil {
		return "unknown memory"
	}
	return fmt.Sprintf("%d GiB", (kib+1<<19)>>20)
}
