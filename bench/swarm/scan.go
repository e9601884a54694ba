package swarm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// maxMessage is the longest message that is read, in bytes: more than any payload that
// a broker takes.
const maxMessage = 1 << 20

// OpText is the opcode of a text frame (RFC 6455 §5.2); a message of any other framing is OpText, too.
const OpText = 0x1

// Other opcodes.
const (
	opClose = 0x8
	opPing  = 0x9
	opPong  = 0xA
)

var (
	errLong       = fmt.Errorf("a message is longer than %d bytes", maxMessage)
	errFragmented = errors.New("a message comes in fragments, which this load client does not read")
	errMasked     = errors.New("a frame from the server is masked")
)

// Unit is one line, one WebSocket frame, one packet.
type Unit struct {
	Op   byte
	Body []byte // a piece of the buffer
}

// CutLine takes the line at the head of buf; size is 0 while it is incomplete.
func CutLine(buf []byte) (u Unit, size int, err error) {
	end := bytes.IndexByte(buf, '\n')
	switch {
	case end > maxMessage, end < 0 && len(buf) > maxMessage:
		return Unit{}, 0, errLong
	case end < 0:
		return Unit{}, 0, nil
	}
	return Unit{OpText, buf[:end]}, end + 1, nil
}

// CutFrame takes the unmasked, unfragmented frame at the head of buf; size is 0 while
// it is incomplete.
func CutFrame(buf []byte) (u Unit, size int, err error) {
	if len(buf) < 2 {
		return Unit{}, 0, nil
	}
	op, head, length := buf[0]&0x0f, 2, uint64(buf[1]&0x7f)
	switch {
	case buf[0]&0x70 != 0:
		return Unit{}, 0, fmt.Errorf("a frame has reserved bits: %#x", buf[0])
	case buf[0]&0x80 == 0 || op == 0:
		return Unit{}, 0, errFragmented
	case buf[1]&0x80 != 0:
		return Unit{}, 0, errMasked
	case length == 126:
		if head = 4; len(buf) < head {
			return Unit{}, 0, nil
		}
		length = uint64(binary.BigEndian.Uint16(buf[2:]))
	case length == 127:
		if head = 10; len(buf) < head {
			return Unit{}, 0, nil
		}
		length = binary.BigEndian.Uint64(buf[2:])
	}
	if length > maxMessage {
		return Unit{}, 0, errLong
	}
	if size = head + int(length); len(buf) < size {
		return Unit{}, 0, nil
	}
	return Unit{op, buf[head:size]}, size, nil
}
