package dialect

import (
	"net/http"
	"net/url"
	"time"

	"switchboard/internal/wire"
)

// Dialect is a protocol that clients speak.
type Dialect interface {
	// Open begins a connection. The error refuses it, and its text is the answer. Over HTTP the status
	// is 400, unless the error is a *Refusal.
	Open(h Hello) (Opening, error)
}

// Refusal is an error of Dialect.Open with an HTTP status of its own.
type Refusal struct {
	Status int
	Text   string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

// Framing is how units are delimited on a connection.
type Framing uint8

// The framings.
const (
	Stream Framing = iota // the dialect delimits them: raw TCP, or the body of an HTTP response
	Text                  // a WebSocket text frame for each
	Binary                // a WebSocket binary frame for each
)

// Hello is what is known of a connection before its first unit.
type Hello struct {
	URL     *url.URL    // of the HTTP request; nil on raw TCP
	Header  http.Header // of the HTTP request, where there is a response body; else nil
	Framing Framing
	// Response has the headers that the transport adds to the response, where there is a response
	// body; else nil. Then the codec's first bytes are the head of an HTTP/1.1 response with them.
	Response http.Header
}

// Opening is a connection that has begun.
type Opening struct {
	Speaker *Speaker
	// Requests are those that the URL, the headers or the first packet stand for.
	Requests []wire.Request
}

// Piece is what Codec.Cut finds at the start of a buffer.
type Piece struct {
	Unit []byte // aliases the buffer; nil for bytes that carry no unit
	N    int    // bytes taken from the buffer; 0 means that more must come
	// TooLarge says that a unit above the limit begins here. Left is not 0 while it goes on after
	// the N bytes: Codec.Skip takes the rest.
	TooLarge bool
	Left     int64
}

// Speaker is how one connection speaks. Connections whose codec keeps no state share a Speaker.
type Speaker struct {
	Codec
	Framing Framing
	// Form is how the connection takes messages. Nil means that Codec.AppendMessage encodes each of
	// them for this connection alone.
	Form *Form
}

// Codec translates for one connection. Its methods are called on the connection's loop.
type Codec interface {
	// Cut finds the first unit in the bytes of a raw TCP connection: what Decode takes. limit is the
	// most bytes of it. The error says that the peer speaks something else.
	Cut(buf []byte, limit int) (Piece, error)
	// Skip continues after a piece that was too large. left is what Cut or Skip returned before.
	// n is how many bytes of buf belong to the unit; more is 0 after its last byte.
	Skip(buf []byte, left int64) (n int, more int64)
	// Decode hands the requests of one unit to r.
	Decode(unit []byte, r Receiver)
	// AppendEvent appends e as it goes on the socket, with the header or delimiter of the framing.
	AppendEvent(dst []byte, e wire.Event) []byte
	// AppendMessage appends m as it goes on the socket of a Speaker without a Form.
	AppendMessage(dst []byte, m *Message) []byte
	// Liveness is when the connection must show signs of life.
	Liveness() Liveness
	// AppendPing appends what asks the peer for a sign of life. On WebSocket the transport sends a
	// ping frame instead.
	AppendPing(dst []byte) []byte
	// Last appends what tells why the connection ends, and returns the status of a WebSocket close
	// frame. detail may be empty; afterMS is 0 or how many milliseconds the client should wait.
	Last(dst []byte, reason wire.CloseReason, detail string, afterMS int64) (out []byte, status int)
}

// Receiver takes what a client has sent.
type Receiver interface {
	// Receive takes a request. size is the bytes of the unit that it came in, or 0 for each further
	// request of the same unit.
	Receive(req wire.Request, size int)
	// Malformed takes a request of size bytes that cannot be read; ref is set if that much could be
	// read. broken says that the unit is not of this dialect at all, so the connection ends.
	Malformed(ref wire.Ref, size int, err error, broken bool)
}

// Liveness is when a connection must show signs of life. Zero durations mean never.
type Liveness struct {
	Ping time.Duration // silence after which the broker asks for a sign of life
	Idle time.Duration // silence after which the connection is closed
}
