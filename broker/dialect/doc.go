// Package dialect is the seam between the protocols that clients speak and the one session behind
// them. A [Dialect] turns bytes into requests and events into bytes; sessions, channels and presence
// know only [wire.Request] and [wire.Event].
//
// A connection has a [Speaker]: the codec of the connection, and the [Form] in which it takes
// messages that many connections share. A [Message] is encoded once for each form, however many
// sockets it goes to.
//
// Package native is the dialect of JSON over WebSocket and over lines of TCP.
package dialect
