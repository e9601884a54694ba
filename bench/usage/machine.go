package usage

import (
	"os/exec"
	"runtime"
	"strings"

	"github.com/prometheus/procfs"
)

// Processor returns the model of the machine's processor, or its architecture if it is unknown.
func Processor() string {
	if proc, err := procfs.NewDefaultFS(); err == nil {
		if list, err := proc.CPUInfo(); err == nil && len(list) > 0 && list[0].ModelName != "" {
			return list[0].ModelName
		}
	}
	return runtime.GOARCH
}

// RedisVersion returns the version of redis-server, "" if it is unknown.
func RedisVersion() string {
	for _, word := range strings.Fields(Output("redis-server", "--version")) {
		if version, found := strings.CutPrefix(word, "v="); found {
			return version
		}
	}
	return ""
}

// Output returns the output of a command, "" if it fails.
func Output(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
