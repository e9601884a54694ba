package rooms

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"switchboard/bench/swarm"
)

// Opcodes (RFC 6455 §5.2).
const (
	opText   = 0x1
	opBinary = 0x2
	opClose  = 0x8
	opPing   = 0x9
	opPong   = 0xA
)

const dialTimeout = 20 * time.Second

// socket is the WebSocket of a client. One goroutine reads, and any may send.
type socket struct {
	conn net.Conn
	in   *bufio.Reader
	body []byte // of the frame that was read last

	mu  sync.Mutex // guards out
	out []byte
}

// openSocket connects to a server.
func openSocket(addr, path string) (_ *socket, err error) {
	conn, err := net.DialTimeout("tcp", addr, dialTimeout)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = conn.Close()
		}
	}()
	s := &socket{conn: conn, in: bufio.NewReaderSize(conn, 2<<10)}
	if _, err := conn.Write(swarm.Upgrade(addr, path)); err != nil {
		return nil, err
	}
	status, err := s.in.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("handshake: %w", err)
	}
	if !bytes.HasPrefix(status, []byte("HTTP/1.1 101 ")) {
		return nil, fmt.Errorf("handshake: the answer is %.100q", status)
	}
	for line := status; len(line) > len("\r\n"); {
		if line, err = s.in.ReadSlice('\n'); err != nil {
			return nil, fmt.Errorf("handshake: %w", err)
		}
	}
	return s, nil
}

// send sends a frame.
func (s *socket) send(op byte, body []byte) error {
	return s.sendBuilt(op, func(dst []byte) []byte { return append(dst, body...) })
}

// sendBuilt sends a frame whose body build appends, less than 64 KiB. The masking key is 0, which
// leaves the body as it is.
func (s *socket) sendBuilt(op byte, build func(dst []byte) []byte) error {
	const final, masked, head = 0x80, 0x80, 2 + 2 + 4 // with a length of two bytes
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = build(append(s.out[:0], make([]byte, head)...))
	frame, length := s.out, len(s.out)-head
	if length < 126 {
		frame = frame[2:]
		frame[1] = masked | byte(length)
	} else {
		frame[1] = masked | 126
		binary.BigEndian.PutUint16(frame[2:], uint16(length))
	}
	frame[0] = final | op
	_, err := s.conn.Write(frame)
	return err
}

// read returns the body of the next message, which is valid until the next read. It answers pings.
func (s *socket) read() ([]byte, error) {
	for {
		op, err := s.readFrame()
		switch {
		case err != nil:
			return nil, err
		case op == opClose:
			return nil, fmt.Errorf("the server closed the connection: %.100q", s.body)
		case op == opPing:
			if err := s.send(opPong, s.body); err != nil {
				return nil, err
			}
		case op == opText || op == opBinary:
			return s.body, nil
		}
	}
}

// readFrame reads a frame into s.body.
func (s *socket) readFrame() (op byte, err error) {
	head, err := s.in.Peek(2)
	if err != nil {
		return 0, err
	}
	op, length, size := head[0]&0x0f, int(head[1]), 2
	switch {
	case head[0]&0xf0 != 0x80 || op == 0 || head[1]&0x80 != 0:
		return 0, fmt.Errorf("the frame begins with %x: it is masked, compressed or fragmented", head)
	case length == 126:
		if head, err = s.in.Peek(4); err != nil {
			return 0, err
		}
		length, size = int(binary.BigEndian.Uint16(head[2:])), 4
	case length == 127:
		return 0, errors.New("the frame is longer than 64 KiB")
	}
	if _, err := s.in.Discard(size); err != nil {
		return 0, err
	}
	if cap(s.body) < length {
		s.body = make([]byte, length)
	}
	s.body = s.body[:length]
	_, err = io.ReadFull(s.in, s.body)
	return op, err
}

func (s *socket) close() { _ = s.conn.Close() }
