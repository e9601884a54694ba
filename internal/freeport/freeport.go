// Package freeport finds TCP ports for servers that tests and benchmarks start. A server that can
// report its own port should listen on port 0 instead: another process can take a port between
// Find and its use.
package freeport

import (
	"fmt"
	"net"
)

// Find returns a port of 127.0.0.1 that has no listener.
func Find() (port int, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// Address returns "127.0.0.1:port" with a port that has no listener.
func Address() (string, error) {
	port, err := Find()
	return fmt.Sprintf("127.0.0.1:%d", port), err
}
