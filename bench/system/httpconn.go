package system

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"
)

// callTimeout limits one call of a publisher.
const callTimeout = 30 * time.Second

// HTTPConn is a keep-alive connection of one publisher. It uses a third of the CPU of net/http's
// client. This matters because publishers share the cores with the measured server.
type HTTPConn struct {
	host string
	conn net.Conn
	in   *bufio.Reader
	out  []byte
	body []byte
}

// DialHTTP connects to host:port.
func DialHTTP(addr string) (*HTTPConn, error) {
	conn, err := net.DialTimeout("tcp", addr, callTimeout)
	if err != nil {
		return nil, err
	}
	return &HTTPConn{host: addr, conn: conn, in: bufio.NewReader(conn)}, nil
}

// Post sends body to path with the headers, each "Name: value\r\n", and returns the response's
// body, which is valid until the next call. A status other than 200 to 202 is an error.
func (h *HTTPConn) Post(ctx context.Context, path, headers string, body []byte) (answer []byte, err error) {
	return h.call(ctx, http.MethodPost, path, headers, body)
}

// Get requests path and returns the response's body, as Post does.
func (h *HTTPConn) Get(ctx context.Context, path string) (answer []byte, err error) {
	return h.call(ctx, http.MethodGet, path, "", nil)
}

// call sends a request and reads the response.
func (h *HTTPConn) call(ctx context.Context, method, path, headers string, body []byte) (answer []byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := h.conn.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		return nil, err
	}
	h.out = fmt.Appendf(h.out[:0], "%s %s HTTP/1.1\r\nHost: ", method, path)
	h.out = append(append(append(append(h.out, h.host...), "\r\n"...), headers...), "Content-Length: "...)
	h.out = append(append(strconv.AppendInt(h.out, int64(len(body)), 10), "\r\n\r\n"...), body...)
	if _, err := h.conn.Write(h.out); err != nil {
		return nil, err
	}
	status, err := h.readResponse()
	if err != nil {
		return nil, fmt.Errorf("the answer to %s %s: %w", method, path, err)
	}
	if status < 200 || status > 202 {
		return nil, fmt.Errorf("%s %s was answered with %d: %.300s", method, path, status, h.body)
	}
	return h.body, nil
}

// readResponse reads a response. Its body is in h.body.
func (h *HTTPConn) readResponse() (status int, err error) {
	line, err := h.readLine()
	if err != nil {
		return 0, err
	}
	version, rest, _ := strings.Cut(string(line), " ")
	code, _, _ := strings.Cut(rest, " ")
	if status, err = strconv.Atoi(code); err != nil || version != "HTTP/1.1" {
		return 0, fmt.Errorf("%.100q is not a status line of HTTP/1.1", line)
	}
	length, chunked := 0, false
	for {
		if line, err = h.readLine(); err != nil {
			return 0, err
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch value = bytes.TrimSpace(value); {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 {
				return 0, fmt.Errorf("%.100q is not a valid length", line)
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = bytes.EqualFold(value, []byte("chunked"))
		}
	}
	if chunked {
		return status, h.readChunks()
	}
	if cap(h.body) < length {
		h.body = make([]byte, length)
	}
	h.body = h.body[:length]
	_, err = io.ReadFull(h.in, h.body)
	return status, err
}

// readLine reads a line and returns it without its end.
func (h *HTTPConn) readLine() ([]byte, error) {
	line, err := h.in.ReadSlice('\n')
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return bytes.TrimRight(line, "\r\n"), err
}

// readChunks reads a chunked body with its trailer.
func (h *HTTPConn) readChunks() (err error) {
	if h.body, err = io.ReadAll(httputil.NewChunkedReader(h.in)); err != nil {
		return err
	}
	for {
		line, err := h.readLine()
		if err != nil || len(line) == 0 {
			return err
		}
	}
}

// Close closes the connection.
func (h *HTTPConn) Close() error { return h.conn.Close() }
