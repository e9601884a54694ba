// Package transport moves bytes between sockets and sessions, and nothing else. Two
// listeners end in the same door, [Accept]:
//
//   - [Poller], on gnet: raw TCP lines and WebSocket on one port, told apart by the
//     first bytes. An idle connection has no goroutine and no buffer.
//   - [Web], behind net/http: WebSocket with everything a web stack expects. Behind the handshake it hands
//     the connection to the Poller; only one that needs the library, for compression or TLS, goes on with
//     coder/websocket, on a goroutine of its own.
//
// All calls of a [Conn] and of a [Receiver] are made on the connection's loop.
package transport
