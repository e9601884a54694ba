package swarm

import (
	"bytes"
	"fmt"
)

// SocketIO is version 5 of the Socket.IO protocol on version 4 of Engine.IO's, over WebSocket: a digit for each layer, then
// JSON. The server of bench/peers/socketio joins a client to a room at its event "subscribe".
type SocketIO struct{ Addr string }

// What is exchanged.
var (
	socketOpen      = []byte("0{")            // Engine.IO: open, with the session
	socketPing      = []byte("2")             // Engine.IO: ping
	socketPong      = []byte("3")             // Engine.IO: pong
	socketConnect   = []byte("40")            // Socket.IO: connect to the main namespace
	socketConnected = []byte("40{")           // and the answer
	socketJoined    = []byte("430[")          // Socket.IO: the acknowledgement of event 0
	socketEvent     = []byte(`42["message",`) // Socket.IO: an event
)

// Cut implements [Dialect].
func (*SocketIO) Cut(buf []byte) (Unit, int, error) { return CutFrame(buf) }

// Upgrade implements [Dialect].
func (d *SocketIO) Upgrade(Link) []byte {
	return Upgrade(d.Addr, "/socket.io/?EIO=4&transport=websocket")
}

// Greet connects; Read subscribes when the server has answered, as its clients do.
func (*SocketIO) Greet(l Link) error { return l.SendText(socketConnect) }

// Read implements [Dialect].
func (*SocketIO) Read(l Link, body []byte) error {
	if data, ok := bytes.CutPrefix(body, socketEvent); ok && len(data) > 0 && data[len(data)-1] == ']' {
		l.Message(data[:len(data)-1], 0)
		return nil
	}
	switch {
	case bytes.HasPrefix(body, socketOpen):
		return nil
	case bytes.HasPrefix(body, socketConnected):
		return l.SendText(fmt.Appendf(nil, `420["subscribe",%q]`, l.Channel()))
	case bytes.HasPrefix(body, socketJoined):
		return l.Ready()
	case bytes.Equal(body, socketPing):
		return l.SendText(socketPong)
	}
	return fmt.Errorf("the server sent %.200s", body)
}

// Ping implements [Dialect]: only the server pings.
func (*SocketIO) Ping() []byte { return nil }
