//go:build !linux

package serve

import "runtime"

func machineReader() func() machine {
	return func() machine { return machine{cpus: runtime.NumCPU()} }
}
