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

// Opcodes of RFC 6455 §5.2. A line is opText.
const (
	opText  = 0x1
	opClose = 0x8
	opPing  = 0x9
	opPong  = 0xA
)

var (
	errLong       = fmt.Errorf("a message is longer than %d bytes", maxMessage)
	errFragmented = errors.New("a message comes in fragments, which this load client does not read")
	errMasked     = errors.New("a frame from the server is masked")
)

// unit is one line, or one WebSocket frame.
type unit struct {
	op   byte
	body []byte // a piece of the buffer
}

// nextLine takes the line at the head of buf; size is 0 while it is incomplete.
func nextLine(buf []byte) (u unit, size int, err error) {
	end := bytes.IndexByte(buf, '\n')
	switch {
	case end > maxMessage, end < 0 && len(buf) > maxMessage:
		return unit{}, 0, errLong
	case end < 0:
		return unit{}, 0, nil
	}
	return unit{opText, buf[:end]}, end + 1, nil
}

// nextFrame takes the unmasked, unfragmented frame at the head of buf; size is 0 while
// it is incomplete.
func nextFrame(buf []byte) (u unit, size int, err error) {
	if len(buf) < 2 {
		return unit{}, 0, nil
	}
	op, head, length := buf[0]&0x0f, 2, uint64(buf[1]&0x7f)
	switch {
	case buf[0]&0x70 != 0:
		return unit{}, 0, fmt.Errorf("a frame has reserved bits: %#x", buf[0])
	case buf[0]&0x80 == 0 || op == 0:
		return unit{}, 0, errFragmented
	case buf[1]&0x80 != 0:
		return unit{}, 0, errMasked
	case length == 126:
		if head = 4; len(buf) < head {
			return unit{}, 0, nil
		}
		length = uint64(binary.BigEndian.Uint16(buf[2:]))
	case length == 127:
		if head = 10; len(buf) < head {
			return unit{}, 0, nil
		}
		length = binary.BigEndian.Uint64(buf[2:])
	}
	if length > maxMessage {
		return unit{}, 0, errLong
	}
	if size = head + int(length); len(buf) < size {
		return unit{}, 0, nil
	}
	return unit{op, buf[head:size]}, size, nil
}

// messageID is the id of a channel's message when the message is head, digits, tail, which is
// how the broker writes one. Anything else is for a JSON decoder.
func messageID(message, head, tail []byte) (id int64, ok bool) {
	rest, ok := bytes.CutPrefix(message, head)
	if !ok {
		return 0, false
	}
	digits := 0
	for digits < len(rest) && digits < 18 && '0' <= rest[digits] && rest[digits] <= '9' {
		id = id*10 + int64(rest[digits]-'0')
		digits++
	}
	return id, digits > 0 && bytes.Equal(rest[digits:], tail)
}
