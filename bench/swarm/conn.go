package swarm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/gobwas/ws"
	"golang.org/x/sys/unix"
)

// state is how far a connection has been opened.
type state uint8

const (
	unopened    state = iota
	dialing           // connect is in progress
	upgrading         // the WebSocket handshake is in progress
	subscribing       // the subscription is in progress
	ready
)

// conn is one subscriber.
type conn struct {
	partial  []byte // an incomplete message; usually empty
	position int64  // last position in the server's numbering
	progress progress
	fd       int32
	state    state
}

func (s *Swarm) client(i int) string { return s.opts.Client + strconv.Itoa(i) }

// describe describes connection i for an error.
func (s *Swarm) describe(i int) string {
	c := &s.conns[i]
	return fmt.Sprintf("connection %d (client %s, channel %s)", i, s.client(i), s.opts.Channels[c.progress.channel])
}

// connected handles the result of connect, and starts the WebSocket handshake or the subscription.
func (s *Swarm) connected(i int) error {
	c := &s.conns[i]
	code, err := unix.GetsockoptInt(int(c.fd), unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	if err != nil {
		return fmt.Errorf("connect to %s: %w", s.target(i).name, err)
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}
	if err := unix.EpollCtl(s.epoll, unix.EPOLL_CTL_MOD, int(c.fd), &event); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	if request := s.dialect.Upgrade(Connection{s, i}); request != nil {
		c.state = upgrading
		return s.write(c, request)
	}
	return s.subscribe(i)
}

func (s *Swarm) subscribe(i int) error {
	s.conns[i].state = subscribing
	return s.dialect.Subscribe(Connection{s, i})
}

func (s *Swarm) markReady(c *conn) {
	c.state = ready
	s.dialing--
	s.ready++
}

// write sends a few bytes. A full socket buffer is an error: it means that the server does not
// read.
func (s *Swarm) write(c *conn, p []byte) error {
	n, err := unix.Write(int(c.fd), p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("write %d bytes: %w", len(p), err)
	}
	return nil
}

// read handles the bytes of one read call.
func (s *Swarm) read(i int) error {
	c := &s.conns[i]
	kept := copy(s.buf, c.partial)
	n, err := unix.Read(int(c.fd), s.buf[kept:])
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return nil
	case err != nil:
		return fmt.Errorf("read: %w", err)
	case n == 0:
		return io.ErrUnexpectedEOF
	}
	before := s.received
	used, err := s.consume(i, s.buf[:kept+n])
	if s.received > before {
		s.reads++
	}
	c.partial = append(c.partial[:0], s.buf[used:kept+n]...)
	return err
}

// consume handles the complete messages in data and returns their size.
func (s *Swarm) consume(i int, data []byte) (used int, err error) {
	c := &s.conns[i]
	for used < len(data) {
		if c.state == upgrading {
			n, err := s.handleUpgrade(i, data[used:])
			if used += n; n == 0 || err != nil {
				return used, err
			}
			continue
		}
		f, n, err := s.dialect.NextFrame(data[used:])
		if n == 0 || err != nil {
			return used, err
		}
		used += n
		if err := s.handleFrame(i, f); err != nil {
			return used, err
		}
	}
	return used, nil
}

// handleFrame handles one frame.
func (s *Swarm) handleFrame(i int, f Frame) error {
	switch f.Op {
	case OpText:
		return s.dialect.Handle(Connection{s, i}, f.Body)
	case opPing:
		pong, err := ws.CompileFrame(ws.MaskFrameInPlace(ws.NewPongFrame(bytes.Clone(f.Body))))
		if err != nil {
			return err
		}
		return s.write(&s.conns[i], pong)
	case opPong:
		return nil
	case opClose:
		return fmt.Errorf("closed by the server: %s", closeText(f.Body))
	}
	return fmt.Errorf("a frame has opcode %#x", f.Op)
}

// deliver passes the number of a message to the checker.
func (s *Swarm) deliver(i int, payload []byte) {
	s.received++
	id, at, ok := parsePayload(payload, s.opts.PayloadSize)
	if ok && at > 0 && s.opts.Latency != nil {
		s.opts.Latency(Now() - at)
	}
	if !ok {
		s.checker.fault("%s: a message that was not pushed: %.120q", s.describe(i), payload)
		return
	}
	if s.opts.Receive != nil {
		s.opts.Receive(i, id)
		return
	}
	s.checker.check(&s.conns[i].progress, id, func() string { return s.describe(i) })
}
