package transport

import (
	"time"

	"switchboard/broker/limit"
	"switchboard/broker/loop"
	"switchboard/internal/wire"
)

// Conn is a connection as its session sees it.
type Conn interface {
	// Write sends the frames of b; what the socket does not take is kept. b is not kept.
	Write(b *wire.Batch)
	// Backlogged says that something written before has not gone out.
	Backlogged() bool
	// Ping asks the peer for a sign of life.
	Ping()
	// RemoteAddr is the peer's host:port, while the connection is open.
	RemoteAddr() string
	// Close says why, as far as the socket takes it, and ends the connection. Nothing is called
	// on the Receiver afterwards. detail may be empty; afterMS is left out when 0.
	Close(reason wire.CloseReason, detail string, afterMS int64)
}

// Receiver is the session behind a connection.
type Receiver interface {
	// Receive takes one message; its bytes are only good during the call.
	Receive(message []byte)
	// TooLarge tells of a message over the limit, which was skipped.
	TooLarge()
	// Broken tells that the peer does not speak the protocol of the transport.
	Broken(detail string)
	// Control tells of frames that carry no message: pings, pongs, fragments before the last one,
	// empty lines, and pieces of a message that is skipped. size is their payload in bytes. It is
	// false when the client sends more of them than it may, and then a ping gets no pong.
	Control(frames, size int) bool
	// Writable tells that the backlog is gone.
	Writable()
	// Closed tells that the peer or the network ended the connection, or that it was Broken.
	// Nothing comes behind it.
	Closed()
}

// MaxFirst is what the broker sets Limits.First to: all that a stranger can make it keep. There is
// room for a token of 8 KiB.
const MaxFirst = 16 << 10

// Hello is what is known of a connection before its first message.
type Hello struct {
	Token  string // of the WebSocket URL
	Client string // of the WebSocket URL
	Secret string // of the WebSocket URL
}

// connects says whether the URL stands for the connect message.
func (h Hello) connects() bool { return h.Token != "" || h.Client != "" }

// Accept makes the session of a new connection, on its loop.
type Accept func(l *loop.Loop, c Conn, hello Hello) Receiver

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
	// when it is not. Nil refuses none. On net/http's port a handler has checked it before.
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

// closing is the message that tells why a connection ends.
func closing(reason wire.CloseReason, detail string, afterMS int64) wire.Frame {
	reconnect := reason.Reconnect()
	return wire.Event{
		Type: wire.TypeClosing, Code: string(reason), Message: detail,
		Reconnect: &reconnect, AfterMS: afterMS,
	}.Encode()
}

// lingerTime is how long a closed connection may take to read why.
const lingerTime = 3 * time.Second

// overloadedMS is how long a client that found no place is asked to wait, in milliseconds.
const overloadedMS = 5000
