// Package transport moves bytes between sockets and sessions. Two listeners accept connections, and
// both call the same [Accept] to make the session:
//
//   - [Poller], on gnet, serves raw TCP and WebSocket on one port. The first byte of a connection
//     decides. An idle connection has no goroutine and no buffer.
//   - [Web] is an http.Handler for WebSocket and for streams in a response body. It hands a
//     connection over to the Poller if it can. WebSockets with compression or TLS need the library
//     coder/websocket and a goroutine each. Streams with TLS or HTTP/2 keep their handler's
//     goroutine.
//
// All methods of a [Conn] and of a [Receiver] are called on the connection's loop.
package transport
