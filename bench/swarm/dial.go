package swarm

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// connsPerAddress is the number of connections that share a source address. A loopback address has
// about 28,000 ports, and ports of an earlier run may still be in TIME_WAIT.
const connsPerAddress = 4096

// target is an address of the server.
type target struct {
	addr  unix.Sockaddr
	name  string
	local bool // on the loopback interface
}

func resolveAll(opts Options) (targets []target, err error) {
	addrs := opts.Addrs
	if len(addrs) == 0 {
		addrs = []string{opts.Addr}
	}
	for _, addr := range addrs {
		t, err := resolve(addr)
		if err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// resolve returns the IPv4 address of host:port.
func resolve(addr string) (target, error) {
	tcp, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return target{}, fmt.Errorf("address %s: %w", addr, err)
	}
	to4 := &unix.SockaddrInet4{Port: tcp.Port}
	if n := copy(to4.Addr[:], tcp.IP.To4()); n != 4 {
		return target{}, fmt.Errorf("address %s: an IPv4 address is needed", addr)
	}
	return target{to4, addr, tcp.IP.IsLoopback()}, nil
}

func (s *Swarm) target(i int) *target { return &s.targets[i%len(s.targets)] }

// dial starts connecting subscriber i.
func (s *Swarm) dial(i int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	c := &s.conns[i]
	c.fd, c.state = int32(fd), dialing
	s.dialing++
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return fmt.Errorf("TCP_NODELAY: %w", err)
	}
	to := s.target(i)
	if to.local {
		// The kernel chooses the port at connect, when it knows the target. A port in use with another
		// target is then available.
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1); err != nil {
			return fmt.Errorf("IP_BIND_ADDRESS_NO_PORT: %w", err)
		}
		from := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, byte(1 + i/connsPerAddress%250)}}
		if err := unix.Bind(fd, from); err != nil {
			return fmt.Errorf("bind to %s: %w", net.IP(from.Addr[:]), err)
		}
	}
	if err := unix.Connect(fd, to.addr); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return fmt.Errorf("connect to %s: %w", to.name, err)
	}
	event := unix.EpollEvent{Events: unix.EPOLLOUT, Fd: int32(i)}
	if err := unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}
