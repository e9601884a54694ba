package transport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"unicode/utf8"

	"github.com/gobwas/ws"

	"switchboard/broker/dialect"
	"switchboard/internal/wire"
)

// Close codes of RFC 6455 §7.4.1 that the framing itself needs.
const (
	statusNormal      = 1000
	statusProtocol    = 1002
	statusUnsupported = 1003
	statusNotUTF8     = 1007
	statusTooBig      = 1009
	lastStatus        = 4999 // codes above have no meaning (§7.4.2)
)

// partialMessage is an incomplete message: it arrives in fragments, or is too large.
type partialMessage struct {
	data     []byte
	skipping bool     // the message is too large: data is nil, and the rest is skipped
	left     int64    // bytes of the current frame that are still to be skipped; on a stream, left of Codec.Skip
	final    bool     // the current frame is the last of the message
	ref      wire.Ref // of a message that is too large, if it was found
}

// upgrade answers a complete WebSocket handshake (RFC 6455 §4.2) and returns its length, or 0 if
// more bytes must arrive.
func (c *pollerConn) upgrade(buf []byte) int {
	end := bytes.Index(buf, []byte("\r\n\r\n"))
	if end < 0 {
		if len(buf) > maxHandshake {
			c.answerError(http.StatusRequestHeaderFieldsTooLarge, "the handshake is too long")
			return len(buf)
		}
		return 0
	}
	end += 4
	var opening dialect.Opening
	rw := &handshake{Reader: bytes.NewReader(buf[:end])}
	_, err := c.upgrader(&opening).Upgrade(rw)
	switch {
	case err == nil:
		c.send(rw.Bytes())
		if c.conn != nil {
			c.open(framed, opening)
		}
	case rw.Len() == 0: // not even a request line
		c.answerError(http.StatusBadRequest, "not HTTP")
	default:
		c.send(rw.Bytes()) // gobwas has written the refusal
		c.linger()
	}
	return end
}

// handshake lets gobwas read the request from the buffer and write its answer to memory.
type handshake struct {
	io.Reader
	bytes.Buffer
}

func (h *handshake) Read(p []byte) (int, error) { return h.Reader.Read(p) }

// upgrader checks the handshake and opens the connection in its dialect.
func (c *pollerConn) upgrader(opening *dialect.Opening) ws.Upgrader {
	var page Page
	var forwarded []string
	return ws.Upgrader{
		OnRequest: func(uri []byte) error {
			u, err := url.ParseRequestURI(string(uri))
			if err != nil || u.Path != "/ws" {
				return ws.RejectConnectionError(ws.RejectionStatus(http.StatusNotFound),
					ws.RejectionReason("WebSocket is at /ws"))
			}
			if *opening, err = c.loop.poller.dialects.openWebSocket(u); err != nil {
				return ws.RejectConnectionError(ws.RejectionStatus(http.StatusBadRequest), ws.RejectionReason(err.Error()))
			}
			return nil
		},
		OnHost: func(h []byte) error {
			page.Host = string(h)
			return nil
		},
		OnHeader: func(key, value []byte) error {
			if bytes.EqualFold(key, []byte("Origin")) {
				page.Origin = string(value)
			}
			if len(c.loop.poller.limits.Proxies) > 0 && bytes.EqualFold(key, []byte("X-Forwarded-For")) {
				forwarded = append(forwarded, string(value))
			}
			return nil
		},
		OnBeforeUpgrade: func() (ws.HandshakeHeader, error) {
			if refusal := c.loop.poller.limits.Page(page); refusal != "" {
				return nil, ws.RejectConnectionError(ws.RejectionStatus(http.StatusForbidden), ws.RejectionReason(refusal))
			}
			return nil, c.enterForwarded(forwarded)
		},
	}
}

// enterForwarded counts a connection from a proxy for the address that the proxy names. OnOpen has
// counted all other connections. From now on the client has that address.
func (c *pollerConn) enterForwarded(values []string) error {
	if len(values) == 0 {
		return nil
	}
	client, refusal := c.loop.poller.limits.enterAs(addressOf(c.conn.RemoteAddr()), values)
	if refusal != nil {
		after := http.Header{"Retry-After": {strconv.Itoa(refusal.Seconds())}}
		return ws.RejectConnectionError(ws.RejectionStatus(http.StatusTooManyRequests),
			ws.RejectionReason(refusal.Detail), ws.RejectionHeader(ws.HandshakeHeaderHTTP(after)))
	}
	if client.addr.IsValid() {
		c.address = client.slot
		c.setRemoteAddr(client.addr)
	}
	return nil
}

// answerError answers with an HTTP error and ends the connection.
func (c *pollerConn) answerError(status int, why string) {
	c.send(fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nConnection: close\r\n\r\n%s\n", status, http.StatusText(status), why))
	c.linger()
}

// readFrame reads one frame and returns its length in buf, or 0 if more bytes must arrive.
func (c *pollerConn) readFrame(buf []byte) int {
	part := c.partialMessage()
	if part != nil && part.left > 0 {
		n := min(part.left, int64(len(buf)))
		part.left -= n
		if c.receiver.Control(1, int(n)); part.left == 0 {
			c.endSkippedFrame()
		}
		return int(n)
	}
	reader := &c.loop.reader
	reader.Reset(buf)
	h, err := ws.ReadHeaderBuffer(reader, c.loop.header[:])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return 0
	}
	if err == nil {
		state := ws.StateServerSide
		if part != nil {
			state = state.Set(ws.StateFragmented)
		}
		err = ws.CheckHeader(h, state)
	}
	if err == nil && !h.Masked {
		err = ws.ErrProtocolMaskRequired
	}
	if err != nil {
		c.fail(statusProtocol, err.Error())
		return len(buf)
	}
	if detail := c.unsupported(h.OpCode); detail != "" {
		c.fail(statusUnsupported, detail)
		return len(buf)
	}
	head := len(buf) - reader.Len()
	if !h.OpCode.IsControl() && part.tooLarge(h.Length, c.limit()) {
		return c.skipFrame(h, head, buf[head:])
	}
	if int64(len(buf)-head) < h.Length {
		return 0
	}
	payload := buf[head : head+int(h.Length)]
	ws.Cipher(payload, h.Mask, 0)
	c.frame(h, payload)
	return head + int(h.Length)
}

// unsupported returns why frames of this kind are refused, or "".
func (c *pollerConn) unsupported(op ws.OpCode) string {
	switch {
	case op == ws.OpBinary && c.encoding.Framing == dialect.Text:
		return "messages are text frames"
	case op == ws.OpText && c.encoding.Framing == dialect.Binary:
		return "messages are binary frames"
	}
	return ""
}

// tooLarge reports whether n more bytes make the message too large. m may be nil.
func (m *partialMessage) tooLarge(n int64, limit int) bool {
	if m == nil {
		return n > int64(limit)
	}
	return m.skipping || int64(len(m.data))+n > int64(limit)
}

// skipFrame begins to skip the payload of a frame of a message that is too large. start has at
// least the first bytes of the payload. The session gets TooLarge after the last byte of the last
// fragment.
func (c *pollerConn) skipFrame(h ws.Header, head int, start []byte) int {
	var ref wire.Ref
	switch part := c.partialMessage(); {
	case part == nil:
		n := min(h.Length, maxRefBytes)
		if int64(len(start)) < n {
			return 0
		}
		start = bytes.Clone(start[:n])
		ws.Cipher(start, h.Mask, 0)
		ref = c.encoding.Ref(start)
	case part.skipping:
		ref = part.ref
	default:
		ref = c.encoding.Ref(part.data[:min(len(part.data), maxRefBytes)])
	}
	c.setPartialMessage(&partialMessage{skipping: true, left: h.Length, final: h.Fin, ref: ref})
	if h.Length > 0 {
		return head
	}
	c.receiver.Control(1, 0)
	c.endSkippedFrame()
	return head
}

// endSkippedFrame reports a message that is too large after its last frame. The session may have
// closed the connection before.
func (c *pollerConn) endSkippedFrame() {
	if part := c.partialMessage(); part != nil && part.final {
		c.setPartialMessage(nil)
		c.tooLarge(part.ref)
	}
}

// frame handles a complete frame.
func (c *pollerConn) frame(h ws.Header, payload []byte) {
	switch h.OpCode {
	case ws.OpPing:
		// Pongs must not pile up for a peer that does not read.
		if c.receiver.Control(1, len(payload)) && !c.Backlogged() {
			c.send(append([]byte{0x8a, byte(len(payload))}, payload...))
		}
	case ws.OpPong:
		c.receiver.Control(1, len(payload))
	case ws.OpClose:
		c.onCloseFrame(payload)
	case ws.OpText, ws.OpBinary:
		if !h.Fin {
			c.setPartialMessage(&partialMessage{data: bytes.Clone(payload)})
			c.receiver.Control(1, 0) // the bytes count when the message is complete
			return
		}
		c.message(payload)
	case ws.OpContinuation:
		part := c.partialMessage()
		part.data = append(part.data, payload...)
		if h.Fin {
			c.setPartialMessage(nil)
			c.message(part.data)
			return
		}
		c.receiver.Control(1, 0)
	}
}

func (c *pollerConn) message(data []byte) {
	if c.encoding.Framing == dialect.Text && !utf8.Valid(data) {
		c.fail(statusNotUTF8, "a text frame is not UTF-8")
		return
	}
	c.receive(data)
}

// onCloseFrame answers the peer's close frame (RFC 6455 §5.5.1) and ends the connection.
func (c *pollerConn) onCloseFrame(payload []byte) {
	if len(payload) == 0 {
		c.finish(statusNormal, "")
		return
	}
	code, reason := statusProtocol, ""
	if len(payload) >= 2 {
		code, reason = int(binary.BigEndian.Uint16(payload)), string(payload[2:])
	}
	switch {
	case !utf8.ValidString(reason):
		code = statusNotUTF8
	case code > lastStatus || ws.CheckCloseFrameData(ws.StatusCode(code), "") != nil:
		code = statusProtocol
	}
	c.finish(code, "")
}

// fail ends a connection that breaks the framing, with a status code of RFC 6455.
func (c *pollerConn) fail(status int, detail string) {
	c.receiver.Broken(detail)
	c.finish(status, detail)
}

// finish sends the close frame to a peer that has ended or broken the connection.
func (c *pollerConn) finish(status int, detail string) {
	c.Flush()
	c.send(closeFrame(status, detail))
	if to := c.receiver; to != nil { // nil if the session has closed the connection, or if the write found the peer gone
		c.linger()
		to.Closed()
	}
}

// closeFrame returns an unmasked close frame. It cuts the reason at 123 bytes, because the payload
// of a control frame has at most 125.
func closeFrame(status int, reason string) []byte {
	reason = reason[:min(len(reason), 123)]
	frame := make([]byte, 0, 4+len(reason))
	frame = append(frame, 0x88, byte(2+len(reason)))
	frame = binary.BigEndian.AppendUint16(frame, uint16(status))
	return append(frame, reason...)
}
