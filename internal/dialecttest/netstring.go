package dialecttest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"switchboard/broker/dialect"
)

// maxDigits is the most digits of a netstring's length.
const maxDigits = 9

// Cut implements dialect.Codec. A unit is the payload of a netstring.
func (c *codec) Cut(buf []byte, limit int) (dialect.Piece, error) {
	colon := bytes.IndexByte(buf[:min(len(buf), maxDigits+1)], ':')
	if colon < 0 && len(buf) <= maxDigits {
		return dialect.Piece{}, nil
	}
	if colon < 0 {
		return dialect.Piece{}, errors.New("a netstring starts with its length")
	}
	n, err := strconv.ParseUint(string(buf[:colon]), 10, 32)
	if err != nil {
		return dialect.Piece{}, fmt.Errorf("netstring: %q is not a length", buf[:colon])
	}
	whole := colon + 1 + int(n) + 1
	switch {
	case int(n) > limit && len(buf) < whole:
		return dialect.Piece{N: len(buf), TooLarge: true, Left: int64(whole - len(buf))}, nil
	case int(n) > limit:
		return dialect.Piece{N: whole, TooLarge: true}, nil
	case len(buf) < whole:
		return dialect.Piece{}, nil
	case buf[whole-1] != ',':
		return dialect.Piece{}, errors.New("a netstring ends with a comma")
	case n == 0:
		return dialect.Piece{N: whole}, nil
	}
	return dialect.Piece{Unit: buf[colon+1 : whole-1], N: whole}, nil
}

// Skip implements dialect.Codec.
func (c *codec) Skip(buf []byte, left int64) (n int, more int64) {
	n = int(min(left, int64(len(buf))))
	return n, left - int64(n)
}

// readNetstring returns the payload of the next netstring. With an error it returns the bytes that
// it has read.
func readNetstring(r *bufio.Reader) ([]byte, error) {
	head, err := r.ReadBytes(':')
	if err != nil {
		return head, err
	}
	n, err := strconv.Atoi(string(head[:len(head)-1]))
	if err != nil {
		return head, err
	}
	unit := make([]byte, n+1)
	if read, err := io.ReadFull(r, unit); err != nil {
		return unit[:read], err
	}
	if unit[n] != ',' {
		return unit, errors.New("a netstring ends with a comma")
	}
	return unit[:n], nil
}

func appendNetstring(dst, payload []byte) []byte {
	dst = append(strconv.AppendInt(dst, int64(len(payload)), 10), ':')
	return append(append(dst, payload...), ',')
}
