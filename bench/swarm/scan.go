package swarm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// maxMessage is the maximum message size in bytes. It is larger than any payload that a broker
// accepts.
const maxMessage = 1 << 20

// OpText is the opcode of a text frame (RFC 6455 §5.2). Lines and packets have it too.
const OpText = 0x1

// Other opcodes.
const (
	opClose = 0x8
	opPing  = 0x9
	opPong  = 0xA
)

var (
	errTooLong    = fmt.Errorf("a message is longer than %d bytes", maxMessage)
	errFragmented = errors.New("a message is fragmented, which is not supported")
	errMasked     = errors.New("a frame from the server is masked")
)

// Frame is one line, one WebSocket frame or one packet.
type Frame struct {
	Op   byte
	Body []byte // part of the buffer
}

// NextLine returns the line at the start of buf; size is 0 if it is incomplete.
func NextLine(buf []byte) (f Frame, size int, err error) {
	end := bytes.IndexByte(buf, '\n')
	switch {
	case end > maxMessage, end < 0 && len(buf) > maxMessage:
		return Frame{}, 0, errTooLong
	case end < 0:
		return Frame{}, 0, nil
	}
	return Frame{OpText, buf[:end]}, end + 1, nil
}

// NextWebSocket returns the unmasked, unfragmented frame at the start of buf; size is 0 if it is
// incomplete.
func NextWebSocket(buf []byte) (f Frame, size int, err error) {
	if len(buf) < 2 {
		return Frame{}, 0, nil
	}
	op, head, length := buf[0]&0x0f, 2, uint64(buf[1]&0x7f)
	switch {
	case buf[0]&0x70 != 0:
		return Frame{}, 0, fmt.Errorf("a frame has reserved bits: %#x", buf[0])
	case buf[0]&0x80 == 0 || op == 0:
		return Frame{}, 0, errFragmented
	case buf[1]&0x80 != 0:
		return Frame{}, 0, errMasked
	case length == 126:
		if head = 4; len(buf) < head {
			return Frame{}, 0, nil
		}
		length = uint64(binary.BigEndian.Uint16(buf[2:]))
	case length == 127:
		if head = 10; len(buf) < head {
			return Frame{}, 0, nil
		}
		length = binary.BigEndian.Uint64(buf[2:])
	}
	if length > maxMessage {
		return Frame{}, 0, errTooLong
	}
	if size = head + int(length); len(buf) < size {
		return Frame{}, 0, nil
	}
	return Frame{op, buf[head:size]}, size, nil
}
