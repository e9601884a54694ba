// Package dialect stands between the protocols that clients speak and the session. A [Dialect]
// turns bytes into requests, and events into bytes; sessions, channels and presence know only
// [wire.Request] and [wire.Event].
//
// Each connection has an [Encoding]: a [Codec], and the [Form] of the messages that it shares with
// other connections. A [Message] is encoded once for each form, however many connections receive
// it.
//
// A message m may change the state of its channel, and may have an author. Then m.Changes or
// m.Envelope is not nil, and connections get different messages:
//
//   - If m has only an author, its bytes have it. Connections that see authors, which most do, get
//     m itself. The others get a message of their own, which is only encoded if there is such a
//     connection.
//   - If m has changes, a connection that sees neither changes nor authors gets m itself, which is
//     encoded as if it had none. If m has no data either, it is empty and has no bytes. A dialect
//     that keeps the client's position moves it past an empty message too.
//   - Others get a part of m: a message with a [wire.StateEvent] as its State, which has the
//     changes and the author that the connection sees. A dialect that cannot show the state does
//     not subscribe with it.
//
// Pages of a state are messages with an Event of the type state.
//
// Package native is the dialect of JSON over WebSocket and over lines of TCP. Package sse is the
// dialect of Server-Sent Events.
package dialect
