package system

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"

	"golang.org/x/sys/unix"

	"switchboard/broker/dialect"
	"switchboard/broker/dialect/native"
)

// firstID is the floor's first message id. It has as many digits as a broker's ids, so that
// messages have the same size.
const firstID = 1_000_000_000_000_000

// FloorWriter runs the writer process. It prints its address and accepts connections. For each line
// of stdin it writes a message with the line as payload to all connections. args are the number of
// connections, "lines" or "frames", and the name of the channel.
func FloorWriter(args []string, stdin io.Reader, out io.Writer) error {
	if len(args) != 3 {
		return errors.New("the arguments must be connections, framing and channel")
	}
	connections, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	listener, addr, err := listenRaw()
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer unix.Close(listener)
	if _, err := fmt.Fprintln(out, addr); err != nil {
		return err
	}
	sockets := make([]int, connections)
	for i := range sockets {
		if sockets[i], err = acceptRaw(listener); err != nil {
			return fmt.Errorf("accept connection %d: %w", i, err)
		}
	}
	frame := dialect.Prepared.Line
	if args[1] == "frames" {
		frame = dialect.Prepared.WebSocket
	}
	messages, rounds := native.New(0), int64(0)
	lines := bufio.NewScanner(stdin)
	for ; lines.Scan(); rounds++ {
		if err := writeAll(sockets, frame(messages.Message(args[2], firstID+rounds, lines.Bytes()).Prepared)); err != nil {
			return err
		}
	}
	return lines.Err()
}

// writeAll writes p to all sockets. This is the work that the floor measures.
func writeAll(sockets []int, p []byte) error {
	for i, fd := range sockets {
		if n, err := unix.Write(fd, p); err != nil || n < len(p) {
			return fmt.Errorf("write to connection %d: %d of %d bytes: %w", i, n, len(p), err)
		}
	}
	return nil
}

func listenRaw() (fd int, addr string, err error) {
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, "", err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, "", errors.Join(err, unix.Close(fd))
	}
	if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
		return 0, "", errors.Join(err, unix.Close(fd))
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return 0, "", errors.Join(err, unix.Close(fd))
	}
	return fd, fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port), nil
}

// acceptRaw accepts a connection and configures it as the broker's event loops do.
func acceptRaw(listener int) (int, error) {
	for {
		fd, _, err := unix.Accept4(listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, err
		}
		return fd, unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
}
