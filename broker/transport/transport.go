package transport

import (
	"net/netip"
	"net/url"
	"time"

	"switchboard/broker/dialect"
	"switchboard/broker/limit"
	"switchboard/broker/loop"
	"switchboard/internal/wire"
)

// Conn is a connection as its session sees it.
type Conn interface {
	// Send encodes an event for this connection and writes it. The connection keeps the bytes that
	// the socket does not take.
	Send(e wire.Event)
	// Write writes messages that other connections share. b is not kept.
	Write(b *dialect.Batch)
	// Cork holds writes back until Uncork, which writes them in one call. Calls nest. At most
	// maxCorked bytes are held back. Several connections of a loop may be corked at the same time.
	Cork()
	// Flush writes what Cork holds back.
	Flush()
	// Uncork ends a Cork.
	Uncork()
	// Backlogged reports whether earlier writes have not gone out yet. If it returns true, the
	// Receiver's Writable is called later.
	Backlogged() bool
	// Liveness returns how long the connection may be silent.
	Liveness() dialect.Liveness
	// Ping asks the peer for an answer.
	Ping()
	// RemoteAddr returns the client's host:port, while the connection is open. It is the one that a
	// trusted proxy names, or else the peer's. The port is 0 if the proxy names only the host.
	RemoteAddr() string
	// RemoteAddrPort returns RemoteAddr without making its text, or the zero AddrPort if it names no
	// IP address. An IPv4 address is not mapped into IPv6.
	RemoteAddrPort() netip.AddrPort
	// Close sends the reason, if the socket takes it, and ends the connection. No method of the
	// Receiver is called afterwards. detail may be empty. afterMS is the retry delay in
	// milliseconds, or 0.
	Close(reason wire.CloseReason, detail string, afterMS int64)
}

// Receiver is the session of a connection. It receives requests and the events of the socket.
type Receiver interface {
	dialect.Receiver
	// TooLarge is called for a message over the limit, which was skipped. ref is its reference, if
	// that is among the first maxRefBytes.
	TooLarge(ref wire.Ref)
	// Broken is called when the peer breaks the framing. Closed follows.
	Broken(detail string)
	// Control is called for frames that carry no message: pings, pongs, fragments before the last
	// one, empty lines, and pieces of a message that is skipped. size is their payload in bytes. It
	// returns false if the client is over its rate limit; then a ping gets no pong.
	Control(frames, size int) bool
	// Writable is called when the backlog has gone out.
	Writable()
	// Closed is called last, when the peer or the network ended the connection.
	Closed()
}

// maxCorked is the most bytes that Cork holds back. With more, the session would notice too late
// that the socket is backed up.
const maxCorked = 16 << 10

// MaxFirst is the broker's value for Limits.First. It bounds the memory that a client can use
// before it connects, and has room for a token of 8 KiB.
const MaxFirst = 16 << 10

// maxRefBytes is how many bytes of a message that is too large are searched for its reference.
const maxRefBytes = 512

// Accept returns the session of a new connection. It is called on the connection's loop. requests
// are those that the handshake contains.
type Accept func(l *loop.Loop, c Conn, requests []wire.Request) Receiver

// Dialects are the protocols that the listeners speak.
type Dialects struct {
	// Stream returns the dialect of a raw TCP connection that starts with this byte; nil refuses
	// it. The byte is never a capital letter, because requests of HTTP start with one.
	Stream func(first byte) dialect.Dialect
	// WebSocket is spoken at /ws, in frames of this Framing.
	WebSocket dialect.Dialect
	Framing   dialect.Framing
	// Response is spoken in the body of the response to a GET request. The client sends nothing
	// after its request.
	Response dialect.Dialect
}

// openWebSocket opens a WebSocket with the URL of its handshake.
func (d Dialects) openWebSocket(u *url.URL) (dialect.Opening, error) {
	return d.WebSocket.Open(dialect.Hello{URL: u, Framing: d.Framing})
}

// Limits are what both listeners allow.
type Limits struct {
	Message int // bytes of one message from a client
	First   int // bytes of a message before connect; zero means Message
	Gate    *Gate
	// Addresses limits the connections of each address. Nil limits none.
	Addresses *limit.Addresses
	// Proxies are the networks of proxies whose X-Forwarded-For names the client.
	Proxies []netip.Prefix
	// Handshake is the most time until the first byte of raw TCP, or until the end of the WebSocket
	// handshake.
	Handshake time.Duration
	// Page returns why a WebSocket handshake of a page is refused, or "" to accept it.
	Page func(Page) (refusal string)
}

// message returns the most bytes of a message. first means that the client has not connected yet.
func (l Limits) message(first bool) int {
	if first && l.First > 0 {
		return min(l.Message, l.First)
	}
	return l.Message
}

// overloadedMS is the retry delay for a client that the Gate has refused, in milliseconds.
const overloadedMS = 5000
