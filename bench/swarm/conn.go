package swarm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/gobwas/ws"
	"golang.org/x/sys/unix"

	"switchboard/internal/wire"
)

// state is how far a connection has come.
type state uint8

const (
	unopened  state = iota
	dialing         // the kernel has not told how connect went
	upgrading       // the WebSocket handshake is not answered
	greeting        // connect and subscribe are not answered
	ready
)

// conn is one subscriber.
type conn struct {
	rest  []byte // an incomplete message; mostly empty
	place place
	fd    int32
	state state
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
		return fmt.Errorf("connect to %s: %w", s.opts.Addr, err)
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}
	if err := unix.EpollCtl(s.epoll, unix.EPOLL_CTL_MOD, int(c.fd), &event); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	switch s.opts.Manner {
	case Silent, SilentFrames:
		s.isReady(c)
		return nil
	case WebSocket:
		c.state = upgrading
		return s.write(c, s.upgrade)
	}
	return s.greet(i)
}

// greet sends connect and subscribe in one write.
func (s *Swarm) greet(i int) error {
	c := &s.conns[i]
	c.state = greeting
	var out []byte
	for _, r := range []wire.Request{
		{Type: wire.TypeConnect, Ref: wire.RefOf(1), Client: s.client(i)},
		{Type: wire.TypeSubscribe, Ref: wire.RefOf(2), Channel: s.opts.Channels[c.place.channel]},
	} {
		encoded, err := s.encode(r)
		if err != nil {
			return err
		}
		out = append(out, encoded...)
	}
	return s.write(c, out)
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
		u, n, err := s.next(data[used:])
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
func (s *Swarm) take(i int, u unit) error {
	c := &s.conns[i]
	switch u.op {
	case opText:
		if id, ok := messageID(u.body, s.heads[c.place.channel], s.tail); ok {
			s.deliver(i, id)
			return nil
		}
		return s.event(i, u.body)
	case opPing:
		pong, err := ws.CompileFrame(ws.MaskFrameInPlace(ws.NewPongFrame(bytes.Clone(u.body))))
		if err != nil {
			return err
		}
		return s.write(c, pong)
	case opPong:
		return nil
	case opClose:
		return fmt.Errorf("closed by the server: %s", closeText(u.body))
	}
	return fmt.Errorf("a frame has opcode %#x", u.op)
}

func (s *Swarm) deliver(i int, id int64) {
	s.received++
	s.ledger.note(&s.conns[i].place, id, func() string { return s.who(i) })
}

// event acts on what is not an ordinary message of the channel.
func (s *Swarm) event(i int, body []byte) error {
	c := &s.conns[i]
	e, err := wire.DecodeEvent(body)
	if err != nil {
		return fmt.Errorf("%.80q: %w", body, err)
	}
	switch e.Type {
	case wire.TypeConnected:
		return nil
	case wire.TypePing:
		return s.write(c, s.pong)
	case wire.TypePong:
		s.pongs++
		return nil
	case wire.TypeSubscribed:
		if c.state != greeting {
			return errors.New("a second answer to one subscribe")
		}
		s.isReady(c)
		return nil
	case wire.TypeMessage:
		if e.ID != nil && e.Channel == s.opts.Channels[c.place.channel] && bytes.Equal(e.Data, s.opts.Payload) {
			s.deliver(i, *e.ID) // the same in another notation
			return nil
		}
		s.received++
		s.ledger.fault("%s: a message that was not pushed: %.120q", s.who(i), body)
		return nil
	}
	return fmt.Errorf("the server sent %.200s", body)
}
