// Package freeport finds TCP ports for servers that tests and benchmarks start. A server that can
// report its own port should listen on port 0 instead: another process can take a port between
// Find and its use.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// The ports are below those that systems give to outgoing connections and to listeners on port 0
// (from 32768 on Linux, from 49152 elsewhere), which would take a port until its server starts.
const lowest, highest = 15000, 32000

var (
	mu    sync.Mutex
	found = map[int]bool{} // not found again by this process
)

// Find returns a port of 127.0.0.1 that has no listener, another one at each call.
func Find() (port int, err error) {
	mu.Lock()
	defer mu.Unlock()
	for range 1000 {
		port = lowest + rand.IntN(highest-lowest)
		if found[port] {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			found[port] = true
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}

// Address returns "127.0.0.1:port" with a port that has no listener.
func Address() (string, error) {
	port, err := Find()
	return fmt.Sprintf("127.0.0.1:%d", port), err
}
