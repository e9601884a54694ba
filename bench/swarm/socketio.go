package swarm

import (
	"bytes"
	"fmt"
)

// SocketIO is version 5 of the Socket.IO protocol over version 4 of Engine.IO on WebSocket. Each
// layer prepends a digit to the JSON. The event "subscribe" joins a client to a room in
// bench/peers/socketio.
type SocketIO struct{ Addr string }

// The exchanged messages.
var (
	socketOpen      = []byte("0{")            // Engine.IO: open, with the session
	socketPing      = []byte("2")             // Engine.IO: ping
	socketPong      = []byte("3")             // Engine.IO: pong
	socketConnect   = []byte("40")            // Socket.IO: connect to the main namespace
	socketConnected = []byte("40{")           // the answer to connect
	socketJoined    = []byte("430[")          // Socket.IO: the acknowledgement of event 0
	socketEvent     = []byte(`42["message",`) // Socket.IO: an event
)

// NextFrame implements [Dialect].
func (*SocketIO) NextFrame(buf []byte) (Frame, int, error) { return NextWebSocket(buf) }

// Upgrade implements [Dialect].
func (d *SocketIO) Upgrade(Connection) []byte {
	return Upgrade(d.Addr, "/socket.io/?EIO=4&transport=websocket")
}

// Subscribe connects. Handle subscribes after the server's answer, as socket.io's client does.
func (*SocketIO) Subscribe(c Connection) error { return c.SendText(socketConnect) }

// Handle implements [Dialect].
func (*SocketIO) Handle(c Connection, body []byte) error {
	if data, ok := bytes.CutPrefix(body, socketEvent); ok && len(data) > 0 && data[len(data)-1] == ']' {
		c.Deliver(data[:len(data)-1], 0)
		return nil
	}
	switch {
	case bytes.HasPrefix(body, socketOpen):
		return nil
	case bytes.HasPrefix(body, socketConnected):
		return c.SendText(fmt.Appendf(nil, `420["subscribe",%q]`, c.Channel()))
	case bytes.HasPrefix(body, socketJoined):
		return c.Ready()
	case bytes.Equal(body, socketPing):
		return c.SendText(socketPong)
	}
	return fmt.Errorf("the server sent %.200s", body)
}
