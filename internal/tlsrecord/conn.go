package tlsrecord

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// closeTimeout bounds the write of close_notify.
const closeTimeout = 5 * time.Second

// Conn is a connection that was taken over, as a net.Conn. Its methods may be called from several
// goroutines.
type Conn struct {
	socket net.Conn
	state  tls.ConnectionState

	readMu sync.Mutex // held by Read; guards the two below
	raw    []byte     // was received and is not opened
	plain  []byte     // was opened and is not read

	writeMu sync.Mutex // held while records are sealed and written, so that they leave in order
	failed  error      // guarded by writeMu: a write has failed, and perhaps sent a part of a record

	mu       sync.Mutex // guards the fields below; never held while the socket waits
	layer    *Layer
	detached bool
}

// NewConn returns the Conn of an accepted connection with a Layer. socket is what was given to
// Accept.
func NewConn(socket net.Conn, a *Accepted) *Conn {
	return &Conn{socket: socket, state: a.State, layer: a.Layer, raw: a.Ahead}
}

// ConnectionState returns the state at the end of the handshake.
func (c *Conn) ConnectionState() tls.ConnectionState { return c.state }

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	for len(c.plain) == 0 {
		if len(b) == 0 {
			return 0, nil
		}
		opened, err := c.openNext()
		switch {
		case err != nil:
			return 0, c.readError(err)
		case opened:
			c.answer()
		default:
			if err := c.receive(); err != nil {
				return 0, err
			}
		}
	}
	n := copy(b, c.plain)
	if c.plain = c.plain[n:]; len(c.plain) == 0 {
		c.plain = nil
	}
	return n, nil
}

// openNext opens the next record in raw, and reports whether there was one.
func (c *Conn) openNext() (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.detached {
		return false, errTaken
	}
	plain, n, err := c.layer.Open(nil, c.raw, nil)
	c.plain, c.raw = plain, c.raw[n:]
	return n > 0, err
}

// answer sends the KeyUpdate that the layer owes, if any. While a Write is under way, the next
// Write sends it: it must only come before new data (4.6.3).
func (c *Conn) answer() {
	if c.writeMu.TryLock() {
		defer c.writeMu.Unlock()
		_ = c.writeLocked(func(l *Layer) ([]byte, error) { return l.Answer(nil, nil) })
	}
}

// receive reads from the socket.
func (c *Conn) receive() error {
	if len(c.raw) == cap(c.raw) {
		size := min(max(4096, 2*len(c.raw)), MaxRecord)
		c.raw = append(make([]byte, 0, size), c.raw...)
	}
	n, err := c.socket.Read(c.raw[len(c.raw):cap(c.raw)])
	c.raw = c.raw[:len(c.raw)+n]
	switch {
	case n > 0:
		return nil
	case err == io.EOF:
		return io.ErrUnexpectedEOF // without close_notify the data may be truncated (6.1)
	}
	return err
}

// readError sends the alert after an error of Layer.Open, and returns that of Read.
func (c *Conn) readError(err error) error {
	if errors.Is(err, errTaken) {
		return err
	}
	if errors.Is(err, ErrClosed) {
		return io.EOF
	}
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	_ = c.socket.SetWriteDeadline(time.Now().Add(closeTimeout))
	_ = c.writeLocked(func(l *Layer) ([]byte, error) { return l.SealAlert(nil, AlertOf(err), nil) })
	return err
}

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (int, error) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	err := c.writeLocked(func(l *Layer) ([]byte, error) {
		return l.Seal(make([]byte, 0, SealedSize(len(b))), b, nil)
	})
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// writeLocked writes what seal returns. After a failure nothing is sealed any more: the client may
// have a part of a record.
func (c *Conn) writeLocked(seal func(*Layer) ([]byte, error)) error {
	if c.failed != nil {
		return c.failed
	}
	c.mu.Lock()
	if c.detached {
		c.mu.Unlock()
		return errTaken
	}
	out, err := seal(c.layer)
	c.mu.Unlock()
	if err == nil && len(out) > 0 {
		_, err = c.socket.Write(out)
	}
	c.failed = err
	return err
}

// Close sends close_notify (6.1) and closes the socket.
func (c *Conn) Close() error {
	c.mu.Lock()
	detached := c.detached
	c.mu.Unlock()
	if detached {
		return errTaken
	}
	if c.writeMu.TryLock() { // otherwise a Write waits for the client; closing ends it
		_ = c.socket.SetWriteDeadline(time.Now().Add(closeTimeout))
		_ = c.writeLocked(func(l *Layer) ([]byte, error) { return l.SealAlert(nil, CloseNotify, nil) })
		c.writeMu.Unlock()
	}
	err := c.socket.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.layer.Wipe(nil)
	return err
}

// Detach ends this Conn without touching the socket, and returns what goes on: the socket, its
// Layer, what was received and not opened, and what was opened and not read. No Read or Write may
// be under way. If a Write has failed, Detach returns its error, and the connection must be closed.
func (c *Conn) Detach() (socket net.Conn, l *Layer, raw, plain []byte, err error) {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.failed != nil:
		return nil, nil, nil, nil, c.failed
	case c.detached:
		return nil, nil, nil, nil, errTaken
	}
	c.detached = true
	return c.socket, c.layer, c.raw, c.plain, nil
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return c.socket.LocalAddr() }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.socket.RemoteAddr() }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error { return c.socket.SetDeadline(t) }

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.socket.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.socket.SetWriteDeadline(t) }
