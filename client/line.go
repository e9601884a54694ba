package client

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
)

// lineConn is a raw TCP connection: one JSON object per line.
type lineConn struct {
	nc   net.Conn
	r    *bufio.Reader
	long []byte // a line that does not fit the reader's buffer
	out  []byte // the lines of one write
}

func newLineConn(nc net.Conn) *lineConn {
	return &lineConn{nc: nc, r: bufio.NewReader(nc)}
}

func (l *lineConn) read() ([]byte, error) {
	for {
		line, err := l.readLine()
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

func (l *lineConn) readLine() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return line, eofError(line, err)
	}
	l.long = append(l.long[:0], line...)
	for err == bufio.ErrBufferFull {
		if len(l.long) > maxMessage {
			return nil, errMessageTooLong
		}
		line, err = l.r.ReadSlice('\n')
		l.long = append(l.long, line...)
	}
	return l.long, eofError(l.long, err)
}

// eofError returns err, or io.ErrUnexpectedEOF for an end within a line.
func eofError(line []byte, err error) error {
	if err == io.EOF && len(line) > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (l *lineConn) write(ctx context.Context, messages [][]byte) error {
	l.out = l.out[:0]
	for _, m := range messages {
		l.out = append(append(l.out, m...), '\n')
	}
	deadline, _ := ctx.Deadline()
	if err := l.nc.SetWriteDeadline(deadline); err != nil {
		return err
	}
	_, err := l.nc.Write(l.out)
	return err
}

func (l *lineConn) close() { _ = l.nc.Close() }
