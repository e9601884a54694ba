//go:build !linux

package transport

// rawWrite takes nothing: the caller goes on in the ordinary way.
func rawWrite(int, []byte) int { return 0 }
