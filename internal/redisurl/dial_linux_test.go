package redisurl

import (
	"net"
	"syscall"
	"testing"
	"time"
)

// TestKeepAlive checks that connections are probed after 30 s, three times, 5 s apart.
func TestKeepAlive(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	conn, err := new(target).dialer(time.Second, nil)(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		for option, want := range map[int]int{syscall.TCP_KEEPIDLE: 30, syscall.TCP_KEEPINTVL: 5, syscall.TCP_KEEPCNT: 3} {
			if got, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, option); got != want || err != nil {
				t.Errorf("option %d is %d, %v, want %d", option, got, err, want)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
}
