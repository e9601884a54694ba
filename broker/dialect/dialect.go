package dialect

import (
	"net/http"
	"net/url"

	"switchboard/internal/wire"
)

// Dialect is a protocol that clients speak.
type Dialect interface {
	// Open starts a connection. An error refuses it. Over HTTP the client receives the text of the
	// error, with status 400 unless the error is a *Refusal. On raw TCP the connection is closed.
	Open(h Hello) (Opening, error)
}

// Refusal is an error of Dialect.Open with an HTTP status of its own.
type Refusal struct {
	Status int
	Text   string
	JSON   []byte // the body of the answer; nil means Text
}

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

// Framing is how units are delimited on a connection. A unit is the input of Codec.Decode.
type Framing uint8

// The framings.
const (
	Stream Framing = iota // the dialect delimits them: raw TCP, or the body of an HTTP response
	Text                  // a WebSocket text frame for each
	Binary                // a WebSocket binary frame for each
)

// Hello is what the broker knows of a connection before its first unit.
type Hello struct {
	URL     *url.URL    // of the HTTP request; nil on raw TCP
	Header  http.Header // of the HTTP request, if the response body carries the stream; otherwise nil
	Framing Framing
	// Response has the transport's headers for the response, if the response body carries the
	// stream; otherwise nil. If it is set, the codec first writes the head of an HTTP/1.1 response
	// with these headers.
	Response http.Header
}

// Opening is how a connection starts.
type Opening struct {
	Encoding *Encoding
	// Requests are the requests that the URL and the headers contain.
	Requests []wire.Request
}

// Encoding is how one connection encodes and decodes. Connections whose codec keeps no state share
// one Encoding.
type Encoding struct {
	Codec
	Framing Framing
	// Form is how the connection receives messages that it shares with others. Nil means that
	// Codec.AppendMessage encodes each message for this connection alone.
	Form *Form
}
