package swarm

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/gobwas/ws"

	"switchboard/internal/wire"
)

// The key and the answer to it are the example of RFC 6455 §1.3; every connection may use
// the same.
const (
	socketKey    = "dGhlIHNhbXBsZSBub25jZQ=="
	socketAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
)

// upgradeRequest opens a WebSocket at path.
func upgradeRequest(addr, path string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n", path, addr, socketKey)
}

// upgraded reads the answer to the handshake and then greets; 0 means more must come.
func (s *Swarm) upgraded(i int, data []byte) (used int, err error) {
	end := bytes.Index(data, []byte("\r\n\r\n"))
	if end < 0 {
		if len(data) > maxMessage {
			return 0, errLong
		}
		return 0, nil
	}
	answer := data[:end]
	if !bytes.HasPrefix(answer, []byte("HTTP/1.1 101 ")) || !bytes.Contains(answer, []byte(socketAccept)) {
		return 0, fmt.Errorf("the WebSocket handshake was answered with %.300q", data)
	}
	return end + 4, s.greet(i)
}

// encode is r as it goes out on this swarm's connections.
func (s *Swarm) encode(r wire.Request) ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if s.opts.Manner == WebSocket {
		return ws.CompileFrame(ws.MaskFrameInPlace(ws.NewTextFrame(body)))
	}
	return append(body, '\n'), nil
}

// closeText is the code and reason of a close frame.
func closeText(body []byte) string {
	if len(body) < 2 {
		return "without a code"
	}
	return fmt.Sprintf("%d %.120q", binary.BigEndian.Uint16(body), body[2:])
}
