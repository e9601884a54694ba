package dialect

import "encoding/binary"

// maxHead is the longest header of an unmasked WebSocket frame (RFC 6455 §5.2).
const maxHead = 10

// Opcodes of WebSocket data frames (RFC 6455 §5.2) that are a whole message each, with the FIN bit.
const (
	textFrame   = 0x81
	binaryFrame = 0x82
)

// Packed is one unit for two framings in one buffer: a WebSocket header, the payload, and a
// delimiter of one byte. Each framing is a view of the buffer. The buffer is never changed, so all
// goroutines may share it; the views have no spare capacity, so appending to one copies.
type Packed struct {
	buf  []byte // header | payload | delimiter
	head uint8  // bytes of the header
}

// Pack appends to dst the room for a header; the caller appends the payload and calls Sealed.
func Pack(dst []byte) []byte { return append(dst, make([]byte, maxHead)...) }

// Sealed puts the header of a text frame before the payload, which begins after the room that Pack
// made at the start of b, and the delimiter after it.
func Sealed(b []byte, delimiter byte) Packed {
	var head [maxHead]byte
	size := header(&head, textFrame, len(b)-maxHead)
	start := maxHead - size
	copy(b[start:], head[:size])
	b = append(b, delimiter)
	return Packed{buf: b[start:len(b):len(b)], head: uint8(size)}
}

// Payload is the payload alone.
func (p Packed) Payload() []byte { return p.buf[p.head : len(p.buf)-1 : len(p.buf)-1] }

// Line is the payload and the delimiter.
func (p Packed) Line() []byte { return p.buf[p.head:] }

// WebSocket is the payload as a text frame from the server.
func (p Packed) WebSocket() []byte { return p.buf[: len(p.buf)-1 : len(p.buf)-1] }

// Size is how many bytes the unit takes in memory, and about as many on a socket.
func (p Packed) Size() int { return len(p.buf) }

// SealFrame puts the header of a frame before the payload in dst, which begins after the room that
// Pack appended at start, and closes the gap between them.
func SealFrame(dst []byte, start int, f Framing) []byte {
	opcode := byte(textFrame)
	if f == Binary {
		opcode = binaryFrame
	}
	var head [maxHead]byte
	payload := dst[start+maxHead:]
	size := header(&head, opcode, len(payload))
	copy(dst[start:], head[:size])
	copy(dst[start+size:], payload)
	return dst[:start+size+len(payload)]
}

// header writes the header of a frame with n bytes of payload and returns its length.
func header(head *[maxHead]byte, opcode byte, n int) int {
	head[0] = opcode
	switch {
	case n < 126:
		head[1] = byte(n)
		return 2
	case n <= 0xffff:
		head[1] = 126
		binary.BigEndian.PutUint16(head[2:], uint16(n))
		return 4
	}
	head[1] = 127
	binary.BigEndian.PutUint64(head[2:], uint64(n))
	return 10
}

// NextFrame splits the first frame off bytes that SealFrame or Sealed made. rest is empty after the
// last frame.
func NextFrame(frames []byte) (framing Framing, payload, rest []byte) {
	framing = Text
	if frames[0] == binaryFrame {
		framing = Binary
	}
	n, head := int(frames[1]), 2
	switch n {
	case 126:
		n, head = int(binary.BigEndian.Uint16(frames[2:])), 4
	case 127:
		n, head = int(binary.BigEndian.Uint64(frames[2:])), 10
	}
	return framing, frames[head : head+n], frames[head+n:]
}
