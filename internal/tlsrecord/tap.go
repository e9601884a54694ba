package tlsrecord

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// errTaken is the error of a tls.Conn whose connection a Layer has taken over.
var errTaken = errors.New("tlsrecord: the connection was taken over")

// tap lies between a tls.Conn and its socket. During the handshake it gives the tls.Conn one record
// at a time, so that nothing waits undecrypted in it afterwards, and keeps what is sent. After the
// takeover it refuses what the tls.Conn does: it would write with a number that was used.
type tap struct {
	net.Conn
	keys trafficKeys

	readMu sync.Mutex // guards the two below
	ahead  []byte     // was read, and the tls.Conn has not got it
	left   int        // bytes of the record that the tls.Conn is reading

	mu    sync.Mutex // guards the fields below; held while the tls.Conn writes
	state tapState
	sent  []byte // during the handshake
}

type tapState uint8

const (
	handshaking tapState = iota
	passing              // the connection stays with its tls.Conn
	taken
)

// maxSent bounds what is kept of a handshake: certificates are most of it.
const maxSent = 1 << 18

// Read implements net.Conn.
func (t *tap) Read(b []byte) (int, error) {
	t.readMu.Lock()
	defer t.readMu.Unlock()
	switch t.current() {
	case taken:
		return 0, errTaken
	case passing:
		if len(t.ahead) == 0 {
			return t.Conn.Read(b)
		}
		n := copy(b, t.ahead)
		t.ahead = t.ahead[n:]
		return n, nil
	}
	if t.left == 0 {
		if err := t.fill(headerSize); err != nil {
			return 0, err
		}
		t.left = headerSize + int(t.ahead[3])<<8 + int(t.ahead[4])
	}
	if err := t.fill(1); err != nil {
		return 0, err
	}
	n := copy(b, t.ahead[:min(len(t.ahead), t.left)])
	t.ahead, t.left = t.ahead[n:], t.left-n
	return n, nil
}

// fill reads until n bytes are ahead.
func (t *tap) fill(n int) error {
	for len(t.ahead) < n {
		var b [4096]byte
		got, err := t.Conn.Read(b[:])
		t.ahead = append(t.ahead, b[:got]...)
		switch {
		case len(t.ahead) >= n:
		case err == io.EOF && len(t.ahead) > 0:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
	}
	return nil
}

// Write implements net.Conn.
func (t *tap) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.state == taken:
		return 0, errTaken
	case t.state == handshaking && len(t.sent)+len(b) > maxSent:
		return 0, errors.New("tlsrecord: the handshake sends too much")
	case t.state == handshaking:
		t.sent = append(t.sent, b...)
	}
	return t.Conn.Write(b)
}

// Close implements net.Conn.
func (t *tap) Close() error { return t.unlessTaken(t.Conn.Close) }

// SetDeadline implements net.Conn.
func (t *tap) SetDeadline(at time.Time) error {
	return t.unlessTaken(func() error { return t.Conn.SetDeadline(at) })
}

// SetReadDeadline implements net.Conn.
func (t *tap) SetReadDeadline(at time.Time) error {
	return t.unlessTaken(func() error { return t.Conn.SetReadDeadline(at) })
}

// SetWriteDeadline implements net.Conn.
func (t *tap) SetWriteDeadline(at time.Time) error {
	return t.unlessTaken(func() error { return t.Conn.SetWriteDeadline(at) })
}

func (t *tap) unlessTaken(do func() error) error {
	if t.current() == taken {
		return errTaken
	}
	return do()
}

func (t *tap) current() tapState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state
}

// pass ends the observation: the connection stays with its tls.Conn.
func (t *tap) pass() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state, t.sent = passing, nil
	t.keys.wipe()
}
