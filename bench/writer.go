package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"golang.org/x/sys/unix"

	"switchboard/internal/wire"
)

// firstID makes the floor's ids as long as a broker's, and so the messages.
const firstID = 1_000_000_000_000_000

// floorWriter is the writer's process. It prints its address, takes connections, writes the next
// message to all of them for every byte of in, and at the end prints what that cost.
func floorWriter(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 3 {
		return errors.New("the writer takes connections, size and transport")
	}
	connections, err1 := strconv.Atoi(args[0])
	size, err2 := strconv.Atoi(args[1])
	if err := errors.Join(err1, err2); err != nil {
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
	message := wire.Frame.Line
	if paths[args[2]] != "" {
		message = wire.Frame.WebSocket
	}
	before, err := ownCPU()
	if err != nil {
		return err
	}
	rounds := int64(0)
	for token := make([]byte, 1); ; rounds++ {
		if _, err := io.ReadFull(in, token); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		p := message(wire.EncodeMessage("bench-0", firstID+rounds, payload(size)))
		if err := writeAll(sockets, p); err != nil {
			return err
		}
	}
	after, err := ownCPU()
	if err != nil {
		return err
	}
	writes := rounds * int64(connections)
	return json.NewEncoder(out).Encode(floorResult{
		Connections: connections, Writes: writes, CPUPerWrite: micros(after-before) / float64(max(1, writes)),
	})
}

// writeAll is what is measured.
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

// acceptRaw takes a connection and sets it up as the broker's event loops do.
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
