package wire

import "encoding/binary"

// maxHead is the longest header of an unmasked WebSocket frame (RFC 6455 §5.2).
const maxHead = 10

// Frame is one server message, encoded once for every framing: the WebSocket header,
// the JSON and a line break lie in one buffer, and each framing is a view of it. It is
// never changed after it was made, so all goroutines may share it; the views have no room
// behind them, so that appending to one copies.
type Frame struct {
	buf  []byte // header | JSON | '\n'
	head uint8  // length of the header
}

// NewFrame makes a Frame of one compact JSON object, which it copies.
func NewFrame(json []byte) Frame {
	b := make([]byte, maxHead, maxHead+len(json)+1)
	return seal(append(b, json...))
}

// seal puts the header in front of the JSON that begins at maxHead, and the line
// break behind it.
func seal(b []byte) Frame {
	var head [maxHead]byte
	head[0] = 0x81 // FIN, text
	n := len(b) - maxHead
	size := 2
	switch {
	case n < 126:
		head[1] = byte(n)
	case n <= 0xffff:
		head[1], size = 126, 4
		binary.BigEndian.PutUint16(head[2:], uint16(n))
	default:
		head[1], size = 127, 10
		binary.BigEndian.PutUint64(head[2:], uint64(n))
	}
	start := maxHead - size
	copy(b[start:], head[:size])
	b = append(b, '\n')
	return Frame{buf: b[start:len(b):len(b)], head: uint8(size)}
}

// JSON is the bare object.
func (f Frame) JSON() []byte { return f.buf[f.head : len(f.buf)-1 : len(f.buf)-1] }

// Line is the object as a line of raw TCP.
func (f Frame) Line() []byte { return f.buf[f.head:] }

// WebSocket is the object as a text frame from the server.
func (f Frame) WebSocket() []byte { return f.buf[: len(f.buf)-1 : len(f.buf)-1] }

// Size is about how many bytes the message takes in memory and on the wire.
func (f Frame) Size() int { return len(f.buf) }

// Batch is a run of frames that goes out in one write call. The joined bytes are made
// once per framing and shared by all connections of one event loop; a Batch belongs to
// one goroutine.
type Batch struct {
	Frames []Frame
	line   []byte
	socket []byte
}

// Line is all frames as lines. It must not be changed.
func (b *Batch) Line() []byte {
	if b.line == nil {
		b.line = b.join(Frame.Line)
	}
	return b.line
}

// WebSocket is all frames as WebSocket frames. It must not be changed.
func (b *Batch) WebSocket() []byte {
	if b.socket == nil {
		b.socket = b.join(Frame.WebSocket)
	}
	return b.socket
}

func (b *Batch) join(view func(Frame) []byte) []byte {
	if len(b.Frames) == 1 {
		return view(b.Frames[0])
	}
	size := 0
	for _, f := range b.Frames {
		size += f.Size()
	}
	joined := make([]byte, 0, size)
	for _, f := range b.Frames {
		joined = append(joined, view(f)...)
	}
	return joined
}

// maxWrite bounds one write call of a connection that catches up, and with it what a
// stalled socket can leave behind in memory.
const maxWrite = 32 << 10

// Fitting is how many of items fit one write call by their size in bytes, at least one.
func Fitting[T any](items []T, size func(T) int) int {
	bytes := 0
	for i, item := range items {
		if bytes += size(item); bytes > maxWrite {
			return max(i, 1)
		}
	}
	return len(items)
}
