//go:build unix

package broker

import "syscall"

// openFiles returns how many descriptors the process may open, at most ten million.
func openFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 10_000
	}
	return int(min(limit.Cur, 10_000_000))
}
