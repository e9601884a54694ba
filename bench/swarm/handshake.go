package swarm

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// The key and its answer are the example of RFC 6455 §1.3. All connections use them.
const (
	socketKey    = "dGhlIHNhbXBsZSBub25jZQ=="
	socketAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
)

// Upgrade returns the request that opens a WebSocket at path. Each header is "Name: value".
func Upgrade(addr, path string, headers ...string) []byte {
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n", path, addr, socketKey)
	for _, h := range headers {
		request = append(append(request, h...), "\r\n"...)
	}
	return append(request, "\r\n"...)
}

// handleUpgrade reads the answer to the handshake and then subscribes. It returns 0 if the answer
// is incomplete.
func (s *Swarm) handleUpgrade(i int, data []byte) (used int, err error) {
	end := bytes.Index(data, []byte("\r\n\r\n"))
	if end < 0 {
		if len(data) > maxMessage {
			return 0, errTooLong
		}
		return 0, nil
	}
	answer := data[:end]
	if !bytes.HasPrefix(answer, []byte("HTTP/1.1 101 ")) || !bytes.Contains(answer, []byte(socketAccept)) {
		return 0, fmt.Errorf("the WebSocket handshake was answered with %.300q", data)
	}
	return end + 4, s.subscribe(i)
}

// closeText formats the code and the reason of a close frame.
func closeText(body []byte) string {
	if len(body) < 2 {
		return "without a code"
	}
	return fmt.Sprintf("%d %.120q", binary.BigEndian.Uint16(body), body[2:])
}
