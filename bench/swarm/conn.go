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

// state is how far a connection has come.
type state uint8

const (
	unopened  state = iota
	dialing         // the kernel has not told how connect went
	upgrading       // the WebSocket handshake is not answered
	greeting        // the subscription is not confirmed
	ready
)

// conn is one subscriber.
type conn struct {
	rest     []byte // an incomplete message; mostly empty
	position int64  // in the server's numbering
	place    place
	fd       int32
	state    state
	step     uint8 // of the dialect
}

func (s *Swarm) client(i int) string { return s.opts.Client + strconv.Itoa(i) }

// who names connection i in an error.
func (s *Swarm) who(i int) string {
	c := &s.conns[i]
	return fmt.Sprintf("connection %d (client %s, channel %s)", i, s.client(i), s.opts.Channels[c.place.channel])
}

// dialled goes on when the kernel has connected the socket, or not.
func (s *Swarm) dialled(i int) error {
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
	if request := s.dialect.Upgrade(Link{s, i}); request != nil {
		c.state = upgrading
		return s.write(c, request)
	}
	return s.greet(i)
}

func (s *Swarm) greet(i int) error {
	s.conns[i].state = greeting
	return s.dialect.Greet(Link{s, i})
}

func (s *Swarm) isReady(c *conn) {
	c.state = ready
	s.dialing--
	s.ready++
}

// write sends a few bytes. A socket that does not take them belongs to a server that
// reads nothing.
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

// read takes what one read call brings.
func (s *Swarm) read(i int) error {
	c := &s.conns[i]
	kept := copy(s.buf, c.rest)
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
	c.rest = append(c.rest[:0], s.buf[used:kept+n]...)
	return err
}

// consume handles the whole messages in data and returns how many bytes they were.
func (s *Swarm) consume(i int, data []byte) (used int, err error) {
	c := &s.conns[i]
	for used < len(data) {
		if c.state == upgrading {
			n, err := s.upgraded(i, data[used:])
			if used += n; n == 0 || err != nil {
				return used, err
			}
			continue
		}
		u, n, err := s.dialect.Cut(data[used:])
		if n == 0 || err != nil {
			return used, err
		}
		used += n
		if err := s.take(i, u); err != nil {
			return used, err
		}
	}
	return used, nil
}

// take acts on one message.
func (s *Swarm) take(i int, u Unit) error {
	switch u.Op {
	case OpText:
		return s.dialect.Read(Link{s, i}, u.Body)
	case opPing:
		pong, err := ws.CompileFrame(ws.MaskFrameInPlace(ws.NewPongFrame(bytes.Clone(u.Body))))
		if err != nil {
			return err
		}
		return s.write(&s.conns[i], pong)
	case opPong:
		return nil
	case opClose:
		return fmt.Errorf("closed by the server: %s", closeText(u.Body))
	}
	return fmt.Errorf("a frame has opcode %#x", u.Op)
}

// message enters a message into the ledger: under the server's position where all carry the same payload,
// under its own number else.
func (s *Swarm) message(i int, payload []byte, position int64) {
	s.received++
	id, ok := position, bytes.Equal(payload, s.opts.Payload)
	if s.opts.Payload == nil {
		var at int64
		if id, at, ok = parsePayload(payload); ok && at > 0 && s.opts.Latency != nil {
			s.opts.Latency(Now() - at)
		}
	}
	if !ok {
		s.ledger.fault("%s: a message that was not pushed: %.120q", s.who(i), payload)
		return
	}
	s.ledger.note(&s.conns[i].place, id, func() string { return s.who(i) })
}
