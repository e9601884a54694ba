package usage

import (
	"runtime"

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
