// Package dialect stands between the protocols that clients speak and the session. A [Dialect]
// turns bytes into requests, and events into bytes; sessions, channels and presence know only
// [wire.Request] and [wire.Event].
//
// Each connection has an [Encoding]: a [Codec], and the [Form] of the messages that it shares with
// other connections. A [Message] is encoded once for each form, however many connections receive
// it.
//
// Package native is the dialect of JSON over WebSocket and over lines of TCP. Package sse is the
// dialect of Server-Sent Events.
package dialect
