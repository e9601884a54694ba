package dialect

import (
	"time"

	"switchboard/internal/wire"
)

// Codec decodes and encodes for one connection. Its methods are called on the connection's loop.
type Codec interface {
	// Cut finds the first unit in bytes from a raw TCP connection. limit is the most bytes of a
	// unit. An error means that the peer does not speak this dialect.
	Cut(buf []byte, limit int) (Piece, error)
	// Skip finds the rest of a unit that is too large. n is how many bytes of buf belong to the
	// unit. more is 0 if the unit ends there; otherwise the caller passes it as left to the next
	// call. The first left is Piece.Left.
	Skip(buf []byte, left int64) (n int, more int64)
	// Ref returns the reference of the request in a unit that is too large, if the unit's first bytes
	// have it.
	Ref(start []byte) wire.Ref
	// Decode passes each request of a unit to r.
	Decode(unit []byte, r Receiver)
	// AppendEvent appends e as the socket gets it, with the header or delimiter of the framing.
	AppendEvent(dst []byte, e wire.Event) []byte
	// AppendMessage appends m as the socket gets it. It is called if the Encoding has no Form.
	AppendMessage(dst []byte, m *Message) []byte
	// Liveness returns how long the connection may be silent.
	Liveness() Liveness
	// AppendPing appends a message that the client must answer. On WebSocket the transport sends a
	// ping frame instead.
	AppendPing(dst []byte) []byte
	// AppendClosing appends the message that says why the connection ends, in the same framing as
	// AppendEvent. detail may be empty; afterMS is the retry delay in milliseconds, or 0. status is
	// the status code of the WebSocket close frame that follows.
	AppendClosing(dst []byte, reason wire.CloseReason, detail string, afterMS int64) (out []byte, status int)
}

// Piece is what Codec.Cut finds at the start of a buffer.
type Piece struct {
	Unit []byte // shares the buffer's memory; nil for bytes that contain no unit
	N    int    // bytes to take from the buffer; 0 means that more must arrive first
	// TooLarge says that a unit above the limit starts here. If it does not end within the N bytes,
	// Left is not 0, and Codec.Skip finds the rest.
	TooLarge bool
	Left     int64
}

// Receiver receives what Codec.Decode has decoded.
type Receiver interface {
	// Receive receives a request. size is the length of its unit in bytes, or 0 for each further
	// request of the same unit.
	Receive(req wire.Request, size int)
	// Malformed receives a request of size bytes that cannot be decoded. ref is its reference, if
	// that can be decoded. fatal means that the unit is not of this dialect at all; the connection
	// ends.
	Malformed(ref wire.Ref, size int, err error, fatal bool)
}

// Liveness is how long a connection may be silent. In both fields, zero means never.
type Liveness struct {
	Ping time.Duration // silence after which the broker pings the client
	Idle time.Duration // silence after which the broker closes the connection
}
