package system

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"
)

// callTime bounds one call of a publisher.
const callTime = 30 * time.Second

// HTTPConn is one keep-alive connection for one publisher. It costs a third of net/http's client, whose share of
// the two cores would be the server's loss.
type HTTPConn struct {
	host string
	conn net.Conn
	in   *bufio.Reader
	out  []byte
	body []byte
}

// DialHTTP connects to host:port.
func DialHTTP(addr string) (*HTTPConn, error) {
	conn, err := net.DialTimeout("tcp", addr, callTime)
	if err != nil {
		return nil, err
	}
	return &HTTPConn{host: addr, conn: conn, in: bufio.NewReader(conn)}, nil
}

// Post sends body to path with further headers, each "Name: value\r\n", and returns the answer, valid until
// the next call. Another status than 200 to 202 is an error.
func (h *HTTPConn) Post(ctx context.Context, path, headers string, body []byte) (answer []byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := h.conn.SetDeadline(time.Now().Add(callTime)); err != nil {
		return nil, err
	}
	h.out = append(append(append(h.out[:0], "POST "...), path...), " HTTP/1.1\r\nHost: "...)
	h.out = append(append(append(append(h.out, h.host...), "\r\n"...), headers...), "Content-Length: "...)
	h.out = append(append(strconv.AppendInt(h.out, int64(len(body)), 10), "\r\n\r\n"...), body...)
	if _, err := h.conn.Write(h.out); err != nil {
		return nil, err
	}
	status, err := h.answer()
	if err != nil {
		return nil, fmt.Errorf("the answer to POST %s: %w", path, err)
	}
	if status < 200 || status > 202 {
		return nil, fmt.Errorf("POST %s was answered with %d: %.300s", path, status, h.body)
	}
	return h.body, nil
}

// answer reads a whole answer into h.body.
func (h *HTTPConn) answer() (status int, err error) {
	line, err := h.line()
	if err != nil {
		return 0, err
	}
	version, rest, _ := strings.Cut(string(line), " ")
	code, _, _ := strings.Cut(rest, " ")
	if status, err = strconv.Atoi(code); err != nil || version != "HTTP/1.1" {
		return 0, fmt.Errorf("%.100q is no status line of HTTP/1.1", line)
	}
	length, chunked := 0, false
	for {
		if line, err = h.line(); err != nil {
			return 0, err
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch value = bytes.TrimSpace(value); {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 {
				return 0, fmt.Errorf("%.100q is no length", line)
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = bytes.EqualFold(value, []byte("chunked"))
		}
	}
	if chunked {
		return status, h.chunks()
	}
	if cap(h.body) < length {
		h.body = make([]byte, length)
	}
	h.body = h.body[:length]
	_, err = io.ReadFull(h.in, h.body)
	return status, err
}

// line is one line without its end.
func (h *HTTPConn) line() ([]byte, error) {
	line, err := h.in.ReadSlice('\n')
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return bytes.TrimRight(line, "\r\n"), err
}

// chunks reads a body in chunks, and the empty line behind it.
func (h *HTTPConn) chunks() (err error) {
	if h.body, err = io.ReadAll(httputil.NewChunkedReader(h.in)); err != nil {
		return err
	}
	for {
		line, err := h.line()
		if err != nil || len(line) == 0 {
			return err
		}
	}
}

// Close ends the connection.
func (h *HTTPConn) Close() error { return h.conn.Close() }
