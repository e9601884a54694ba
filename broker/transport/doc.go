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
//
// # Files
//
// Files in reading order: pollerloop.go, streamconn.go, stream.go, handover.go, proxiedconn.go,
// web.go, webconn.go, resets.go, pollerws.go, pollerwrite.go, listener.go, framecount.go,
// rawwrite_linux.go, proxied.go, queueconn.go, poller.go, pollerconn.go, address.go,
// shutdown_unix.go, shutdown_windows.go, rawwrite_other.go, transport.go, gate.go, page.go.
package transport
