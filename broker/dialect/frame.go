package dialect

import "encoding/binary"

// maxHeader is the longest header of an unmasked WebSocket frame (RFC 6455 §5.2), in bytes.
const maxHeader = 10

// First bytes of WebSocket data frames (RFC 6455 §5.2): the FIN bit and the opcode. Each frame is a
// whole message.
const (
	textFrame   = 0x81
	binaryFrame = 0x82
)

// Prepared is one unit in two framings. One buffer has a WebSocket header, the payload and a
// delimiter of one byte, and each framing is a part of it. The buffer is never changed, so all
// goroutines may share it. The parts have no spare capacity, so appending to one copies it.
type Prepared struct {
	buf []byte // header | payload | delimiter
}

// ReserveHeader appends room for the header of a frame. The caller appends the payload and then
// calls Prepare or PutHeader.
func ReserveHeader(dst []byte) []byte { return append(dst, make([]byte, maxHeader)...) }

// Prepare writes the header of a text frame directly before the payload, and the delimiter after
// it. b is the room of ReserveHeader and the payload; Prepared keeps it.
func Prepare(b []byte, delimiter byte) Prepared {
	var header [maxHeader]byte
	size := fillHeader(&header, textFrame, len(b)-maxHeader)
	start := maxHeader - size
	copy(b[start:], header[:size])
	b = append(b, delimiter)
	return Prepared{b[start:len(b):len(b)]}
}

// Payload returns the payload alone.
func (p Prepared) Payload() []byte { return p.buf[headerSize(p.buf) : len(p.buf)-1 : len(p.buf)-1] }

// Line returns the payload and the delimiter.
func (p Prepared) Line() []byte { return p.buf[headerSize(p.buf):] }

// WebSocket returns the payload as a text frame from the server.
func (p Prepared) WebSocket() []byte { return p.buf[: len(p.buf)-1 : len(p.buf)-1] }

// Size returns how many bytes the unit takes in memory. On a socket it takes about as many.
func (p Prepared) Size() int { return len(p.buf) }

// PutHeader writes the header of a frame and moves the payload directly after it. dst has the room
// of ReserveHeader at start, and then the payload up to its end.
func PutHeader(dst []byte, start int, f Framing) []byte {
	first := byte(textFrame)
	if f == Binary {
		first = binaryFrame
	}
	var header [maxHeader]byte
	payload := dst[start+maxHeader:]
	size := fillHeader(&header, first, len(payload))
	copy(dst[start:], header[:size])
	copy(dst[start+size:], payload)
	return dst[:start+size+len(payload)]
}

// fillHeader writes the header of a frame with n bytes of payload and returns its length.
func fillHeader(header *[maxHeader]byte, first byte, n int) int {
	header[0] = first
	switch {
	case n < 126:
		header[1] = byte(n)
		return 2
	case n <= 0xffff:
		header[1] = 126
		binary.BigEndian.PutUint16(header[2:], uint16(n))
		return 4
	}
	header[1] = 127
	binary.BigEndian.PutUint64(header[2:], uint64(n))
	return 10
}

// headerSize returns the size of the header at the start of frame.
func headerSize(frame []byte) int {
	switch frame[1] {
	case 126:
		return 4
	case 127:
		return 10
	}
	return 2
}

// NextFrame splits the first frame off frames that Prepare or PutHeader made. rest is empty after
// the last frame.
func NextFrame(frames []byte) (framing Framing, payload, rest []byte) {
	framing = Text
	if frames[0] == binaryFrame {
		framing = Binary
	}
	n, header := int(frames[1]), headerSize(frames)
	switch n {
	case 126:
		n = int(binary.BigEndian.Uint16(frames[2:]))
	case 127:
		n = int(binary.BigEndian.Uint64(frames[2:]))
	}
	return framing, frames[header : header+n], frames[header+n:]
}
