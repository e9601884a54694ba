package redisurl

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
)

// TestCloseDiscards checks that the end of a command without an answer resets its connection, so
// that the kernel does not send the command later.
func TestCloseDiscards(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	client, _, err := Open("redis://" + listener.Addr().String() + "?read_timeout=10ms")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	go func() { _ = client.Ping(t.Context()).Err() }()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.Copy(io.Discard, conn); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ended with %v, want a reset", err)
	}
}
