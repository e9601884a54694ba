// Package transport moves bytes between sockets and sessions, and nothing else. Two
// listeners end in the same door, [Accept]:
//
//   - [Poller], on gnet: raw TCP lines and WebSocket on one port, told apart by the
//     first bytes. An idle connection has no goroutine and no buffer.
//   - [HTTP], on net/http and coder/websocket: WebSocket with everything a web stack
//     expects, on a goroutine per connection.
//
// All calls of a [Conn] and of a [Receiver] are made on the connection's loop.
package transport
