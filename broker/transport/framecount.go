package transport

import (
	"encoding/binary"
	"net"
	"sync/atomic"
)

// reportEvery is how many frames a frameCounter lets pass before it reports them, if no message
// or ping comes first. A library that reads frames for us returns only with a whole message.
const reportEvery = 64

// frameCounter counts the WebSocket frames (RFC 6455 §5.2) of a client in the bytes that a library
// reads. The library itself tells neither of empty fragments nor of how many make a message.
type frameCounter struct {
	net.Conn
	report func() // called by Read, every reportEvery frames

	frames atomic.Int32 // begun, less the messages, and not taken yet; a message may be taken before it is whole
	head   [14]byte     // of the frame at hand, as far as it was read
	n      int          // bytes in head
	skip   uint64       // bytes of its payload that are still to come
}

// Read implements net.Conn.
func (c *frameCounter) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.scan(p[:n])
	if c.frames.Load() >= reportEvery {
		c.report()
	}
	return n, err
}

// message says that one of the frames was a message's last.
func (c *frameCounter) message() { c.frames.Add(-1) }

// take returns how many frames began since the last call, without those of messages.
func (c *frameCounter) take() int {
	n := max(0, c.frames.Load())
	c.frames.Add(-n)
	return int(n)
}

// scan counts the frames that begin in b.
func (c *frameCounter) scan(b []byte) {
	for len(b) > 0 {
		if c.skip > 0 {
			n := min(c.skip, uint64(len(b)))
			c.skip -= n
			b = b[n:]
			continue
		}
		c.head[c.n] = b[0]
		c.n++
		b = b[1:]
		if length, ok := payload(c.head[:c.n]); ok {
			c.frames.Add(1)
			c.n, c.skip = 0, length
		}
	}
}

// payload returns the length of the payload that follows a frame's head; ok is false while the head
// is not whole.
func payload(head []byte) (length uint64, ok bool) {
	if len(head) < 2 {
		return 0, false
	}
	need, mask := 2, 0
	if head[1]&0x80 != 0 {
		mask = 4
	}
	length = uint64(head[1] & 0x7f)
	switch length {
	case 126:
		need = 4
	case 127:
		need = 10
	}
	if len(head) < need+mask {
		return 0, false
	}
	switch need {
	case 4:
		length = uint64(binary.BigEndian.Uint16(head[2:4]))
	case 10:
		length = binary.BigEndian.Uint64(head[2:10])
	}
	return length, true
}
