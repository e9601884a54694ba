package transport

import (
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"

	"github.com/gobwas/ws"

	"switchboard/internal/linger"
)

// reportEvery is how many frames a frameCounter counts before it calls report. Often webConn takes
// the count earlier, with a complete message, a ping or a pong. Without report, fragments would not
// count until their message is complete, because the library returns only whole messages.
const reportEvery = 64

// frameCounter counts the WebSocket frames (RFC 6455 §5.2) of a client in the bytes that the
// library reads. The library itself reports neither empty fragments nor the number of fragments.
type frameCounter struct {
	net.Conn
	report func() // called by Read, every reportEvery frames

	// frames is the number of frames whose headers were read, less the results of take, less one for
	// each call of endMessage. It is negative if take returned the last frame of a message before
	// endMessage was called.
	frames atomic.Int32
	head   [14]byte // the header of the current frame, as far as it was read
	n      int      // bytes in head
	skip   uint64   // bytes of the current payload that are not read yet

	lingers atomic.Bool // linger was called
	dropped int         // bytes that were dropped since then
	ended   bool        // Read returns io.EOF
}

// linger makes Read drop all input, within the bounds of package linger. Read returns io.EOF after
// the peer's close frame. So the library neither inflates messages nor answers pings.
func (c *frameCounter) linger() { c.lingers.Store(true) }

// Read implements net.Conn.
func (c *frameCounter) Read(p []byte) (int, error) {
	for !c.ended {
		n, err := c.Conn.Read(p)
		closed := c.scan(p[:n])
		if !c.lingers.Load() {
			if c.frames.Load() >= reportEvery {
				c.report()
			}
			return n, err
		}
		c.dropped += n
		c.ended = err != nil || closed || c.dropped >= linger.Bytes
	}
	return 0, io.EOF
}

// endMessage subtracts one frame for a message. The session counts the message itself.
func (c *frameCounter) endMessage() { c.frames.Add(-1) }

// take returns frames, or 0 if it is negative, and subtracts the result from it.
func (c *frameCounter) take() int {
	n := max(0, c.frames.Load())
	c.frames.Add(-n)
	return int(n)
}

// scan counts the frames whose headers end in b. It reports whether a close frame ends in b.
func (c *frameCounter) scan(b []byte) (closed bool) {
	for len(b) > 0 {
		if c.skip > 0 {
			n := min(c.skip, uint64(len(b)))
			c.skip -= n
			b = b[n:]
		} else {
			c.head[c.n] = b[0]
			c.n++
			b = b[1:]
			length, ok := payloadLength(c.head[:c.n])
			if !ok {
				continue
			}
			c.frames.Add(1)
			c.n, c.skip = 0, length
		}
		closed = closed || c.skip == 0 && ws.OpCode(c.head[0]&0xf) == ws.OpClose
	}
	return closed
}

// payloadLength returns the length of the payload after a frame's header. ok is false if the
// header is incomplete.
func payloadLength(head []byte) (length uint64, ok bool) {
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
