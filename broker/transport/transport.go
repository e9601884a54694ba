package transport

import (
	"net/url"
	"time"

	"switchboard/broker/dialect"
	"switchboard/broker/limit"
	"switchboard/broker/loop"
	"switchboard/internal/wire"
)

// Conn is a connection as its session sees it.
type Conn interface {
	// Send encodes an event for this connection and writes it; the connection keeps what the socket
	// does not take.
	Send(e wire.Event)
	// Write writes messages that other connections share. b is not kept.
	Write(b *dialect.Batch)
	// Cork gathers what is written until Uncork, so that it goes out in one call. Calls nest. At most
	// maxCorked bytes are held back.
	Cork()
	// Flush writes what Cork holds back.
	Flush()
	Uncork()
	// Backlogged reports whether something written before has not gone out.
	Backlogged() bool
	// Liveness is when the connection must show signs of life.
	Liveness() dialect.Liveness
	// Ping asks the peer for a sign of life.
	Ping()
	// RemoteAddr is the peer's host:port, while the connection is open.
	RemoteAddr() string
	// Close says why, as far as the socket takes it, and ends the connection. Nothing is called
	// on the Receiver afterwards. detail may be empty; afterMS is left out when 0.
	Close(reason wire.CloseReason, detail string, afterMS int64)
}

// Receiver is the session of a connection. It gets requests, and what else the peer does.
type Receiver interface {
	dialect.Receiver
	// TooLarge is called for a message over the limit, which was skipped.
	TooLarge()
	// Broken is called when the peer breaks the framing. Closed follows.
	Broken(detail string)
	// Control is called for frames that carry no message: pings, pongs, fragments before the last
	// one, empty lines, and pieces of a message that is skipped. size is their payload in bytes. It
	// returns false when the client sends more of them than it may; then a ping gets no pong.
	Control(frames, size int) bool
	// Writable is called when the backlog has gone out.
	Writable()
	// Closed is called last, when the peer or the network ended the connection.
	Closed()
}

// maxCorked is the most bytes that Cork holds back: with more waiting, a socket could not show in
// time that it is backed up.
const maxCorked = 16 << 10

// MaxFirst is what the broker sets Limits.First to: the most that a client without a session can
// make it keep. There is room for a token of 8 KiB.
const MaxFirst = 16 << 10

// Accept makes the session of a new connection, on its loop. requests are those that came with the
// handshake.
type Accept func(l *loop.Loop, c Conn, requests []wire.Request) Receiver

// Dialects are the protocols that the listeners speak.
type Dialects struct {
	// Stream returns the dialect of a raw TCP connection that begins with this byte, which is none
	// of the capital letters: with those, requests of HTTP begin. Nil refuses it.
	Stream func(first byte) dialect.Dialect
	// WebSocket is spoken at /ws, in frames of this Framing.
	WebSocket dialect.Dialect
	Framing   dialect.Framing
	// Response is spoken in the body of the response to a GET request. Its units go one way only.
	Response dialect.Dialect
}

// hello opens a WebSocket in its dialect.
func (d Dialects) hello(u *url.URL) (dialect.Opening, error) {
	return d.WebSocket.Open(dialect.Hello{URL: u, Framing: d.Framing})
}

// Limits are what both listeners allow.
type Limits struct {
	Message int // bytes of one message from a client
	First   int // bytes of a message before connect; zero means Message
	Gate    *Gate
	// Addresses counts the connections of each. Nil limits none.
	Addresses *limit.Addresses
	// Handshake is how long a connection may take to its first line, or to the end of its WebSocket handshake.
	Handshake time.Duration
	// Host says why a WebSocket handshake on the Poller's port with that Host is refused; empty
	// accepts it. Nil accepts all. On the port of net/http a handler has checked the Host before.
	Host func(host string) (refusal string)
	// Origin says whether a browser page of that origin may connect to host.
	Origin func(origin, host string) bool
}

// message returns the most bytes of the next message of a connection.
func (l Limits) message(first bool) int {
	if first && l.First > 0 {
		return min(l.Message, l.First)
	}
	return l.Message
}

// lingerTime is how long a closed connection has to read why it was closed.
const lingerTime = 3 * time.Second

// overloadedMS is the retry delay of a client for which there was no place, in milliseconds.
const overloadedMS = 5000
