// Package linger bounds what a server reads from a connection that it has ended.
//
// A socket that is closed with unread input sends RST. Then the peer may lose the last answer,
// which says why the connection ended. So a server shuts its write side first, and reads on, until
// the peer has read the answer and closes its side too. What it reads is dropped.
//
// A peer may send without end, and never read the answer. From one such peer a server could read
// gigabytes. So it reads at most Bytes, for at most Time, and then closes the socket. The RST stops
// the peer.
package linger

import (
	"io"
	"time"
)

const (
	// Time is how long a connection that a server has ended stays open.
	Time = 3 * time.Second
	// Bytes is the most input that is dropped on such a connection. It is as much as the default of
	// limits.byte_rate lets a client send at once, and about as much as the system's buffers hold. A
	// client with less on its way gets the answer, even if it reads slowly. Reading it takes some 2 ms
	// of CPU.
	Bytes = 8 << 20
)

// Drop reads from r until an error, the end, or Bytes. The caller has set a read deadline, and
// closes the connection afterwards.
func Drop(r io.Reader) { _, _ = io.CopyN(io.Discard, r, Bytes) }
