//go:build !linux

package main

import "runtime"

func machineReader() func() machine {
	return func() machine { return machine{cpus: runtime.NumCPU()} }
}
